"""`sskafka acl`: who may do what."""
