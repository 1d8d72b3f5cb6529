"""Single values of declared files are searched for; texts that are in every chart are not."""

from __future__ import annotations

import json

import pytest

from symphony_charts.secrets.leaks import pieces

RANDOM = "4f2a9c8e1b7d6053a4e9f1c2b8d7e6a5f4c3b2a1"


@pytest.mark.parametrize(
    "content",
    [
        f"WANDB_API_KEY={RANDOM}\n",
        f"export WANDB_API_KEY='{RANDOM}'\n",
        f"# mine\n[default]\nwandb = {RANDOM}\n",
        f"machine api.wandb.ai\n  login user\n  password {RANDOM}\n",
        f"machine api.wandb.ai login user password {RANDOM}\n",
        json.dumps({"username": "me", "key": RANDOM}),
        json.dumps({"accounts": [{"nested": RANDOM}]}, indent=2),
        f"DATABASE=postgres://me:{RANDOM}@db/x\n",
        f"api_key: {RANDOM}\n",
        f"{RANDOM}\n",
    ],
)
def test_the_value_itself_is_looked_for(content: str) -> None:
    assert RANDOM.encode() in [piece for _, piece in pieces(content.encode())]


@pytest.mark.parametrize(
    "content",
    [
        "REGION=us-central1-a\nBUCKET=rl-prod-382917-data\nLOG_LEVEL=information\nTOKEN_URL=https://example.org/token\n",
        json.dumps(
            {
                "type": "service_account",
                "project_id": "my-project-382917",
                "client_email": "robot@my-project-382917.iam.gserviceaccount.com",
                "auth_uri": "https://accounts.example.org/o/oauth2/auth",
            },
            indent=2,
        ),
    ],
)
def test_what_stands_in_every_chart_is_not_looked_for(content: str) -> None:
    assert [piece for _, piece in pieces(content.encode())] == [content.strip().encode()]


def test_the_frame_of_a_certificate_and_comments_are_no_secrets() -> None:
    content = (
        b"# Copyright of somebody\n-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ==\n-----END CERTIFICATE-----\n"
    )
    assert [piece for _, piece in pieces(content)][1:] == [b"MIIBszCCAVmgAwIBAgIUQ=="]
