"""/docs: a page that shows the OpenAPI document and lets its reader try every route."""

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from sskafka.servers.http.context import HttpContext

PAGE = Path(__file__).with_name("docs.html")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter()

    @router.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(PAGE.read_text(encoding="utf-8"), headers=HEADERS)

    return router
