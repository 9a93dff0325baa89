"""``/docs``: Swagger UI from this package. A token is typed there, so no script comes from anywhere else."""

from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # Swagger UI sets styles of single elements
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


def serve_documentation(app: FastAPI) -> None:
    """Adds the page, and what it loads, to an application."""
    folder = Path(str(files("api") / "swagger_ui"))

    async def page(_request: Request) -> Response:
        return FileResponse(
            folder / "index.html", media_type="text/html", headers={"Content-Security-Policy": CONTENT_POLICY}
        )

    app.add_route("/docs", page, methods=["GET"], include_in_schema=False)
    app.mount("/docs", StaticFiles(directory=folder))
