"""How the program logs in: lightkube's ways, with every failure of theirs in words, and no secret in any of them.

Solves: a token with a line break is printed by the HTTP library that refuses it, and what a plugin or a token file
holds instead of a token ends in whatever Python raises.
"""

import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import msgspec
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import NameValue
from lightkube.core.exceptions import ConfigError

from .cluster import NoLogin

PLUGIN = "client.authentication.k8s.io/"
SAME_AS = f"{PLUGIN}v1beta1"
"""The version of the protocol of plugins that lightkube speaks; v1 is the same, but for what a plugin is told."""


class Login(httpx2.Auth):
    """INNER, whose failures are `NoLogin`."""

    def __init__(self, inner: httpx2.Auth) -> None:
        self._inner = inner

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """As the HTTP client asks for it."""
        flow = self._inner.async_auth_flow(request)
        answer: httpx2.Response | None = None
        while True:
            try:
                asked = await (anext(flow) if answer is None else flow.asend(answer))
            except StopAsyncIteration:
                return
            except (ConfigError, OSError) as error:
                raise NoLogin(" ".join(str(error).split())) from None
            except UnicodeError:
                raise NoLogin("what should be a token is not text") from None
            except (ValueError, LookupError, TypeError):
                raise NoLogin("what the plugin of the kubeconfig printed holds no status.token") from None
            if any(ord(sign) < 0x20 or ord(sign) == 0x7F for sign in asked.headers.get("Authorization", "")):
                raise NoLogin("the token holds a line break or another control character")
            answer = yield asked


def spoken(config: SingleConfig) -> SingleConfig:
    """CONFIG with a plugin that lightkube starts, which is told which version of its protocol the file asks for."""
    user = config.user
    plugin = user.exec if user else None
    if user is None or plugin is None or plugin.apiVersion not in {SAME_AS, f"{PLUGIN}v1"}:
        return config
    told: dict[str, Any] = {"apiVersion": plugin.apiVersion, "kind": "ExecCredential", "spec": {"interactive": False}}
    env = [*(plugin.env or ()), NameValue("KUBERNETES_EXEC_INFO", json.dumps(told))]
    made = msgspec.structs.replace(plugin, apiVersion=SAME_AS, env=env)
    return config._replace(user=msgspec.structs.replace(user, exec=made))
