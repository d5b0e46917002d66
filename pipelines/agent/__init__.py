"""The ReAct loop, its tools and its transcript."""
