"""Who a connection is: TLS and SASL around the connection of connection.py. Start at listener_security.py."""
