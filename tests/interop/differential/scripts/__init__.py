"""What both systems are asked, one module a family of APIs. Public functions that take only a session are scripts."""
