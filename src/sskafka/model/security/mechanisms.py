"""The names of the SASL mechanisms, apart from their messages: a broker without SASL needs only the names."""

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
SCRAM_NAMES = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SASL_MECHANISMS = (PLAIN, *SCRAM_NAMES, OAUTHBEARER)
