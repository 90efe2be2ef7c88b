"""One file for each group of routes. Each has `routes(context) -> APIRouter`, and app.ROUTES lists them."""
