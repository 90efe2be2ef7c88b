"""One file a group of routes; each has `routes(door) -> APIRouter`, and app.ROUTES lists them."""
