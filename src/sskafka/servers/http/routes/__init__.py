"""One file a group of routes; each has `routes(context) -> APIRouter`, and app.ROUTES lists them."""
