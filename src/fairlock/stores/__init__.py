"""The stores. `base.py` is the contract, `cas.py` serves all that can compare and swap a row."""
