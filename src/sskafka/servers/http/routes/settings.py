"""Settings of topics: the table with their documentation, and the settings that topics override."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from sskafka.client.configs import DescribedConfig, describe_topics_own_configs
from sskafka.model.setting import EachOf, OneOf, Setting, Use, format_value
from sskafka.model.settings_table import TOPIC_SETTINGS
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.routes.paging import NAME_MAX

TOPICS_MAX = 100

TopicNames = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=NAME_MAX)]],
    Query(alias="name", max_length=TOPICS_MAX, description=f"A topic; at most {TOPICS_MAX} of them."),
]


class TopicSetting(BaseModel):
    name: str
    type: str
    default: Annotated[str | None, Field(description="Default of the table; a setting of the broker may replace it.")]
    choices: Annotated[list[str], Field(description="The allowed values, if there are few of them.")]
    documentation: str


class TopicSettings(BaseModel):
    settings: list[TopicSetting]


class OwnConfig(BaseModel):
    name: str
    value: str | None


class OwnConfigs(BaseModel):
    topic: str
    configs: list[OwnConfig]


class OwnConfigsOfTopics(BaseModel):
    topics: list[OwnConfigs]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["inspection"])

    @router.get("/settings/topics", summary="The settings that topics can have, with their documentation")
    async def topic_settings() -> TopicSettings:
        used = (setting for setting in TOPIC_SETTINGS.values() if setting.use is Use.USED)
        return TopicSettings(settings=[_described(setting) for setting in used])

    @router.get("/configs/topics", summary="The settings that topics override")
    async def own_configs(request: Request, names: TopicNames) -> OwnConfigsOfTopics:
        async with context.clients(request) as clients:
            found = await describe_topics_own_configs(clients.cluster, dict.fromkeys(names))
        return OwnConfigsOfTopics(topics=[_own(topic, configs) for topic, configs in sorted(found.items())])

    return router


def _described(setting: Setting) -> TopicSetting:
    choices = setting.allowed.choices if isinstance(setting.allowed, OneOf | EachOf) else ()
    return TopicSetting(
        name=setting.name,
        type=setting.type.name.lower(),
        default=None if setting.default is None else format_value(setting.default),
        choices=list(choices),
        documentation=setting.doc,
    )


def _own(topic: str, configs: list[DescribedConfig]) -> OwnConfigs:
    values = [OwnConfig(name=one.name, value=None if one.is_sensitive else one.value) for one in sorted(configs)]
    return OwnConfigs(topic=topic, configs=values)
