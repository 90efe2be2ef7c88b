"""The private socket between a broker and a process that it has started.

Both ends of a socket pair: the broker keeps one, the child inherits the other. It has no name in the file system, so
nobody else can come in, and it ends with either process: the child that reads the end of it has lost its broker.
What a client could ask goes over the Kafka protocol; here is the rest: votes, readiness, counters.

    server.py     frames, and the broker's end: questions in, answers out
    answers.py    what a broker answers; a new question is a new row there
    link.py       the child's end
"""
