"""Delegation tokens: what the controller decides, by whom and when."""

from collections.abc import Callable
from time import process_time
from typing import Any

import pytest
from metadata_clusters import cluster, decided, replayed, seeded

from sskafka.metadata.delegation_tokens import (
    TokenSettings,
    create_delegation_token,
    describe_delegation_tokens,
    expire_delegation_token,
    remove_expired_tokens,
    renew_delegation_token,
    token_hmac,
)
from sskafka.metadata.features import METADATA_VERSION
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.image_records import image_records
from sskafka.metadata.records import DelegationTokenRecord, FeatureLevelRecord
from sskafka.model.computation import finished
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from sskafka.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from sskafka.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from sskafka.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

KEY = "secret"
SETTINGS = TokenSettings(KEY, max_lifetime_ms=1000, expiry_time_ms=100)
DISABLED = SETTINGS._replace(secret_key=None)
NOW_MS = 5000
RANDOM = seeded()


def create(image: ClusterImage, requester: str = "User:alice", settings: TokenSettings = SETTINGS, **given: Any) -> Any:
    request = CreateDelegationTokenRequest(**given)
    return decided(image, create_delegation_token(image, request, requester, settings, NOW_MS, RANDOM))


def renew(
    image: ClusterImage, hmac: bytes, by: str, at_ms: int, period_ms: int = -1, settings: TokenSettings = SETTINGS
) -> Any:
    request = RenewDelegationTokenRequest(hmac, period_ms)
    return decided(image, renew_delegation_token(image, request, by, settings, at_ms))


def expire(
    image: ClusterImage, hmac: bytes, by: str, at_ms: int, period_ms: int = -1, settings: TokenSettings = SETTINGS
) -> Any:
    request = ExpireDelegationTokenRequest(hmac, period_ms)
    return decided(image, expire_delegation_token(image, request, by, settings, at_ms))


def test_a_token_has_an_hmac_and_three_times() -> None:
    image = cluster()
    made = create(image, renewers=[CreatableRenewers("User", "bob")])
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "alice", "alice")
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (5000, 5100, 6000)
    assert made.hmac == token_hmac(KEY, made.token_id)
    assert len(made.hmac) == 64
    record = image.delegation_tokens[made.token_id]
    assert (record.owner, record.requester, record.renewers) == ("User:alice", "User:alice", ["User:bob"])
    assert record in list(image_records(image)), "snapshots have it"


@pytest.mark.parametrize(("asked_ms", "max_ms", "expiry_ms"), [(-1, 6000, 5100), (50, 5050, 5050), (5000, 6000, 5100)])
def test_a_client_may_ask_for_a_shorter_life(asked_ms: int, max_ms: int, expiry_ms: int) -> None:
    made = create(cluster(), max_lifetime_ms=asked_ms)
    assert (made.max_timestamp_ms, made.expiry_timestamp_ms) == (max_ms, expiry_ms)


def test_a_token_for_another_owner() -> None:
    image = cluster()
    made = create(image, owner_principal_type="User", owner_principal_name="carol")
    assert (made.principal_name, made.token_requester_principal_name) == ("carol", "alice")
    assert image.delegation_tokens[made.token_id].owner == "User:carol"


def test_a_token_has_a_limited_size() -> None:
    image = cluster()
    renewers = [CreatableRenewers("User", f"{number:0500}") for number in range(100)]
    assert create(image, renewers=renewers).error_code == ErrorCode.NONE
    one_more = create(image, renewers=[*renewers, CreatableRenewers("User", "bob")])
    too_long = create(image, renewers=[CreatableRenewers("User", "b" * 501)])
    long_owner = create(image, owner_principal_type="User", owner_principal_name="c" * 501)
    assert {refused.error_code for refused in (one_more, too_long, long_owner)} == {ErrorCode.INVALID_REQUEST}
    assert create(image, requester="User:" + "d" * 501).error_code == ErrorCode.NONE, "the client itself may have it"


def test_an_owner_has_a_limited_number_of_tokens() -> None:
    image = cluster()
    replayed(image, [token(number) for number in range(999)])
    last = create(image)
    assert last.error_code == ErrorCode.NONE
    assert create(image).error_code == ErrorCode.POLICY_VIOLATION
    for_alice = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    assert create(image, "User:bob", **for_alice).error_code == ErrorCode.POLICY_VIOLATION
    assert create(image, "User:bob").error_code == ErrorCode.NONE
    expire(image, last.hmac, "User:alice", NOW_MS)
    assert create(image).error_code == ErrorCode.NONE


def test_a_client_may_request_a_limited_number_of_tokens_for_others() -> None:
    image = cluster()
    replayed(image, [token(number, owner=f"User:{number}") for number in range(10_000)])
    for_carol = {"owner_principal_type": "User", "owner_principal_name": "carol"}
    assert create(image, **for_carol).error_code == ErrorCode.POLICY_VIOLATION
    assert create(image, "User:bob", **for_carol).error_code == ErrorCode.NONE


def token(number: int, owner: str = "User:alice", renewers: int = 0) -> DelegationTokenRecord:
    names = [f"User:renewer-{number}-{renewer}" for renewer in range(renewers)]
    return DelegationTokenRecord(owner, "User:alice", names, NOW_MS, 9000, 9000, f"token-{number}")


def test_many_tokens_are_described_in_steps_whose_time_does_not_grow_with_the_names() -> None:
    """300 tokens with 100 renewers and 10,000 names once took seconds in one turn of the event loop."""
    image = cluster()
    replayed(image, [token(number, renewers=100) for number in range(300)])
    names = [DescribeDelegationTokenOwner("User", f"nobody-{number}") for number in range(9_999)]
    names.append(DescribeDelegationTokenOwner("User", "renewer-7-99"))
    asked: list[int] = []
    began_s, steps = process_time(), 0
    computation = describe_delegation_tokens(
        image, DescribeDelegationTokenRequest(names), KEY, lambda found: asked.append(steps) is None
    )
    while True:
        try:
            next(computation)
        except StopIteration as stop:
            response = stop.value
            break
        steps += 1
    assert [found.token_id for found in response.tokens] == ["token-7"]
    assert steps >= 300 / 10 + 10_000 / 1_000
    assert asked == [10], "only what is wanted is judged, after the names were read"
    assert process_time() - began_s < 1


def test_what_makes_no_token() -> None:
    image = cluster()
    assert create(image, settings=DISABLED).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    group = create(image, renewers=[CreatableRenewers("Group", "g")])
    assert (group.error_code, group.issue_timestamp_ms) == (ErrorCode.INVALID_PRINCIPAL_TYPE, 0)
    replayed(image, [FeatureLevelRecord(METADATA_VERSION, 13)])
    assert create(image).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert not image.delegation_tokens


def test_owner_and_renewers_renew_up_to_the_longest_life() -> None:
    image = cluster()
    made = create(image, renewers=[CreatableRenewers("User", "bob")])
    assert renew(image, made.hmac, "User:bob", 5050).expiry_timestamp_ms == 5150
    assert renew(image, made.hmac, "User:alice", 5060, 10).expiry_timestamp_ms == 5070, "a shorter period counts"
    assert renew(image, made.hmac, "User:alice", 5060, 999).expiry_timestamp_ms == 5160
    for at_ms in range(5160, 5960, 100):
        assert renew(image, made.hmac, "User:alice", at_ms).expiry_timestamp_ms == at_ms + 100
    assert renew(image, made.hmac, "User:alice", 5960).expiry_timestamp_ms == 6000
    assert image.delegation_tokens[made.token_id].expiration_timestamp == 6000
    assert renew(image, made.hmac, "User:alice", 6001).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED


@pytest.mark.parametrize("change", [renew, expire])
def test_who_may_not_change_a_token(change: Any) -> None:
    image = cluster()
    made = create(
        image, owner_principal_type="User", owner_principal_name="carol", renewers=[CreatableRenewers("User", "bob")]
    )
    before = image.delegation_tokens[made.token_id]
    assert change(image, made.hmac, "User:eve", 5001).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert change(image, made.hmac, "User:alice", 5001).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    wrong = made.hmac[:-1] + bytes([made.hmac[-1] ^ 1])
    for hmac in (wrong, b"", made.token_id.encode()):
        assert change(image, hmac, "User:carol", 5001).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert change(image, made.hmac, "User:carol", 5101).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    disabled = change(image, made.hmac, "User:carol", 5001, settings=DISABLED)
    assert (disabled.error_code, disabled.expiry_timestamp_ms) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0)
    other_key = change(image, made.hmac, "User:carol", 5001, settings=SETTINGS._replace(secret_key="other"))
    assert other_key.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert image.delegation_tokens[made.token_id] == before
    assert change(image, made.hmac, "User:bob", 5001).error_code == ErrorCode.NONE


def test_a_token_expires_at_once_or_later() -> None:
    image = cluster()
    made = create(image)
    assert expire(image, made.hmac, "User:alice", 5001, 5).expiry_timestamp_ms == 5006
    assert expire(image, made.hmac, "User:alice", 5001, 99_999).expiry_timestamp_ms == 6000
    assert expire(image, made.hmac, "User:alice", 5001, -1).expiry_timestamp_ms == -1
    assert not image.delegation_tokens


def test_expired_tokens_are_removed() -> None:
    image = cluster()
    short, long = create(image, max_lifetime_ms=10), create(image)
    decided(image, remove_expired_tokens(image, 5010))
    assert set(image.delegation_tokens) == {short.token_id, long.token_id}
    decided(image, remove_expired_tokens(image, 5011))
    assert set(image.delegation_tokens) == {long.token_id}
    assert not remove_expired_tokens(image, 5100).records
    decided(image, remove_expired_tokens(image, 5101))
    assert not image.delegation_tokens


def described(
    image: ClusterImage, request: DescribeDelegationTokenRequest, may_see: Callable[[Any], bool] = lambda _: True
) -> Any:
    return finished(describe_delegation_tokens(image, request, KEY, may_see))


def test_descriptions_are_filtered_by_owner_and_by_right() -> None:
    image = cluster()
    alice = create(image, renewers=[CreatableRenewers("User", "bob")])
    carol = create(image, owner_principal_type="User", owner_principal_name="carol")
    dave = create(image, "User:dave")

    def seen(owners: list[str] | None, *, hidden: str = "") -> list[str]:
        names = None if owners is None else [DescribeDelegationTokenOwner("User", name) for name in owners]
        request = DescribeDelegationTokenRequest(names)
        response = described(image, request, lambda token: token.token_id != hidden)
        return [token.token_id for token in response.tokens]

    assert seen(None) == [alice.token_id, carol.token_id, dave.token_id]
    assert seen([]) == []
    assert seen(["alice"]) == [alice.token_id, carol.token_id], "as owner, and as requester"
    assert seen(["bob"]) == [alice.token_id], "as renewer"
    assert seen(["nobody"]) == []
    assert seen(None, hidden=carol.token_id) == [alice.token_id, dave.token_id]
    found = described(image, DescribeDelegationTokenRequest(None)).tokens[0]
    assert (found.hmac, found.expiry_timestamp, found.max_timestamp) == (alice.hmac, 5100, 6000)
    assert [(renewer.principal_type, renewer.principal_name) for renewer in found.renewers] == [("User", "bob")]
