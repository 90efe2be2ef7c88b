"""Membership of a consumer in a group. Start with `membership.py`.

membership.py            what both protocols share, and the rules for their users; pure
classic_membership.py    JoinGroup, SyncGroup, Heartbeat, LeaveGroup; pure
consumer_membership.py   ConsumerGroupHeartbeat (KIP-848); pure
assignors.py             range, roundrobin and cooperative-sticky, for leaders of classic groups; pure
member_driver.py         sends the requests of a membership in the background
member_offsets.py        commits offsets as the member, and reads committed offsets
group_consumer.py        polls: applies assignments and revocations, calls the callbacks, commits
"""
