"""Which URLs the agent can call; one that it cannot would end it at its first call."""

import httpx2


def is_base_url(text: str) -> bool:
    """Whether a path can be put behind this. No user name and no password: a URL is logged."""
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL:
        return False
    bare = not (url.userinfo or url.query or url.fragment)
    return url.scheme in ("http", "https") and bool(url.host) and bare
