"""Row types of every dataset, declared once with pydantic; Arrow is derived from them."""
