"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter: refused, because the voter set is static."""

from sskafka.metadata.features import KRAFT_VERSION
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from sskafka.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from sskafka.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse


class RaftVoterHandlers:
    def __init__(self, view: ClusterView, listener_name: str) -> None:
        """`listener_name`: the first controller listener, for which a new voter must have an address."""
        self._view = view
        self._listener_name = listener_name

    def add(self, message: AddRaftVoterRequest, request: Request) -> AddRaftVoterResponse:
        code, text = self._refusal(message.cluster_id, "adding")
        names = {listener.name for listener in message.listeners}
        if code is ErrorCode.UNSUPPORTED_VERSION and self._listener_name not in names:
            code = ErrorCode.INVALID_REQUEST
            endpoints = ", ".join(f"{at.name}={at.host}:{at.port}" for at in message.listeners)
            text = (
                f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{endpoints}}})) for the "
                f"default listener ListenerName({self._listener_name})"
            )
        return AddRaftVoterResponse(error_code=code, error_message=text)

    def remove(self, message: RemoveRaftVoterRequest, request: Request) -> RemoveRaftVoterResponse:
        code, text = self._refusal(message.cluster_id, "removing")
        return RemoveRaftVoterResponse(error_code=code, error_message=text)

    def update(self, message: UpdateRaftVoterRequest, request: Request) -> UpdateRaftVoterResponse:
        code, _ = self._refusal(message.cluster_id, "updating")
        return UpdateRaftVoterResponse(error_code=code)

    def _refusal(self, cluster_id: str | None, change: str) -> tuple[ErrorCode, str]:
        ours = self._view.cluster_id
        if cluster_id is not None and cluster_id != ours:
            text = f'The given id "{cluster_id}" doesn\'t match the cluster id "{ours}"'
            return ErrorCode.INCONSISTENT_CLUSTER_ID, text
        if self._view.image.features.get(KRAFT_VERSION, 0) == 0:
            text = f"Cluster doesn't support {change} voter because the kraft.version feature is 0"
        else:
            text = f"This software does not support {change} voters of a running quorum"
        return ErrorCode.UNSUPPORTED_VERSION, text
