"""Authentication: TLS and SASL around the connection of connection.py. Start reading at listener_security.py."""
