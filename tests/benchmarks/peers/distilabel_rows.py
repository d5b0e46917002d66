"""distilabel on the benchmark's requests. Run by a Python that has distilabel; prints one JSON line.

``python distilabel_rows.py ADDRESS ROWS IN_FLIGHT``: batches of as many rows as are in flight elsewhere.
"""

import json
import os
import sys
import tempfile
import time

os.environ |= {"HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none"}

from distilabel.models import OpenAILLM
from distilabel.pipeline import Pipeline
from distilabel.steps import LoadDataFromDicts
from distilabel.steps.tasks import TextGeneration


def main(address: str, rows: int, in_flight: int) -> None:
    """Ask for every row and say how long it took."""
    from prompts import make_prompts

    data = [{"instruction": user, "system_prompt": system} for system, user in make_prompts(rows)]
    with Pipeline(name="rows", cache_dir=tempfile.mkdtemp()) as pipeline:
        load = LoadDataFromDicts(data=data, batch_size=in_flight)
        llm = OpenAILLM(model="mock", base_url=address, api_key="none", generation_kwargs={"temperature": 0.0})
        load >> TextGeneration(llm=llm, input_batch_size=in_flight)
    started = time.monotonic()
    made = pipeline.run(use_cache=False)["default"]["train"]
    spent = time.monotonic() - started
    sys.stdout.write("\n" + json.dumps({"rows": len(made), "seconds": spent}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
