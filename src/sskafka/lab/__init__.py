"""The lab's additions to a broker; nothing below this package knows of the lab.

`quorum_files` subscribes to the quorum and writes two readable files beside the metadata log: the `journal_file` of
topics, whose lines `journal` defines, and a mirror of quorum-state. `votes` asks the Raft state machine of this node
for votes and reports leaders to it. `routes` serves both under /kraft/v1 in the HTTP process, where `journal`
reads the lines.
"""

# Set by `sskafka cluster up --lab`: the lab's clients count partitions from 1 and vote over HTTP.
LAB_SETTINGS = {"log.dir.partition.base": "1", "lab.api": "true"}
