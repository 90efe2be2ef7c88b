"""The stages of the challenge, one file per API."""
