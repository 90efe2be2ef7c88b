"""The private socket between a broker and a process that it has started.

It is a socket pair: the broker keeps one end, the child process inherits the other. The pair has no name in the file
system, so no other process can connect to it. It closes when either process ends: a child that reads end-of-file has
lost its broker. Requests that any Kafka client could send use the Kafka protocol. This socket carries the others:
votes, readiness and metrics.

    server.py         frames, and the broker's end: questions in, answers out
    answers.py        what a broker answers; a new question is a new row there
    changing_options.py   certificates and logins that change while the broker runs
    link.py           the child's end
"""
