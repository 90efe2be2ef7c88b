"""Access control lists: `authorizer.py` decides with them, `changes.py` creates and deletes them."""
