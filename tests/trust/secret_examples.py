"""Made-up secrets of every kind in the table, put together at run time: no file holds one whole."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable

ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "-_"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits


def chars(rng: random.Random, alphabet: str, count: int) -> str:
    """Random characters with a digit and a letter among them, as real values nearly always have."""
    while True:
        text = "".join(rng.choice(alphabet) for _ in range(count - 1)) + rng.choice(alphabet.strip("-_"))
        kinds = [any(c.isdigit() for c in text), any(c.isalpha() for c in text)]
        if all(kinds) and text[0] not in "-_":
            return text


def simple(prefix: str, alphabet: str, count: int) -> Callable[[random.Random], str]:
    return lambda rng: prefix + chars(rng, alphabet, count)


def jwt(rng: random.Random) -> str:
    def part(content: dict[str, object]) -> str:
        raw = json.dumps(content, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    head = part({"alg": "HS256", "typ": "JWT"})
    return f"{head}.{part({'sub': chars(rng, ALNUM, 8), 'n': 1})}.{chars(rng, WORD, 43)}"


# Rule id -> one value of that kind. Rules of URLs and connection strings have their own shapes in SHAPED.
EXAMPLES: dict[str, Callable[[random.Random], str]] = {
    "github": simple("ghp" + "_", ALNUM, 36),
    "github-app": simple("ghs" + "_", ALNUM, 36),
    "github-fine": lambda r: "github_pat" + "_" + chars(r, ALNUM, 22) + "_" + chars(r, ALNUM, 59),
    "gitlab": lambda r: f"glpat{'-'}{chars(r, WORD, 27)}.01.{chars(r, HEX, 9)}",
    "npm": simple("npm" + "_", ALNUM, 36),
    "pypi": lambda r: "pypi" + "-AgEIcHlwaS5vcmc" + chars(r, WORD, 120),
    "rubygems": simple("rubygems" + "_", HEX, 48),
    "docker": simple("dckr_pat" + "_", WORD, 27),
    "atlassian": simple("ATATT3" + "xFfGF0", WORD, 180),
    "anthropic": simple("sk-ant" + "-api03-", WORD, 95),
    "openrouter": simple("sk-or" + "-v1-", HEX, 64),
    "openai-project": lambda r: "sk-proj" + "-" + chars(r, WORD, 74) + "T3BlbkFJ" + chars(r, WORD, 74),
    "sk": simple("sk" + "-", ALNUM, 48),
    "groq": simple("gsk" + "_", ALNUM, 52),
    "huggingface": simple("hf" + "_", ALNUM, 34),
    "replicate": simple("r8" + "_", ALNUM, 37),
    "perplexity": simple("pplx" + "-", ALNUM, 48),
    "xai": simple("xai" + "-", ALNUM, 80),
    "nvidia": simple("nvapi" + "-", WORD, 64),
    "langsmith": lambda r: "lsv2_pt" + "_" + chars(r, HEX, 32) + "_" + chars(r, HEX, 10),
    "aws": simple("AK" + "IA", UPPER, 16),
    "google": simple("AI" + "zaSy", WORD, 33),
    "google-client": simple("GOCSPX" + "-", WORD, 28),
    "google-oauth": simple("ya29" + ".", WORD, 150),
    "azure-ad": lambda r: chars(r, ALNUM, 3) + "8Q" + "~" + chars(r, ALNUM, 34),
    "alibaba": simple("LT" + "AI5t", ALNUM, 20),
    "tencent": simple("AK" + "ID", ALNUM, 32),
    "digitalocean": simple("dop_v1" + "_", HEX, 64),
    "databricks": simple("da" + "pi", HEX, 32),
    "vault": simple("hvs" + ".", WORD, 90),
    "pulumi": simple("pul" + "-", HEX, 40),
    "fly": simple("fo1" + "_", WORD, 43),
    "doppler": simple("dp" + ".pt.", ALNUM, 43),
    "supabase": simple("sbp" + "_", HEX, 40),
    "planetscale": simple("pscale" + "_tkn_", WORD, 43),
    "slack": lambda r: (
        "xox" + "b-" + f"{r.randrange(10**11, 10**12)}-{r.randrange(10**12)}-" + chars(r, ALNUM, 24)
    ),
    "slack-webhook": lambda r: "/".join(
        ["T" + chars(r, UPPER, 8), "B" + chars(r, UPPER, 10), chars(r, ALNUM, 24)]
    ),
    "discord-webhook": simple("", WORD, 68),
    "telegram": lambda r: f"{r.randrange(10**8, 10**10)}:A" + "A" + chars(r, WORD, 33),
    "stripe": simple("sk" + "_live_", ALNUM, 99),
    "stripe-webhook": simple("whsec" + "_", ALNUM, 32),
    "shopify": simple("shpat" + "_", HEX, 32),
    "square": simple("sq0atp" + "-", WORD, 22),
    "twilio": simple("S" + "K", HEX, 32),
    "sendgrid": lambda r: "SG" + "." + chars(r, WORD, 22) + "." + chars(r, WORD, 43),
    "mailgun": simple("key" + "-", HEX, 32),
    "brevo": lambda r: "xkeysib" + "-" + chars(r, HEX, 64) + "-" + chars(r, ALNUM, 16),
    "linear": simple("lin_api" + "_", ALNUM, 40),
    "notion": simple("ntn" + "_", ALNUM, 46),
    "notion-old": simple("secret" + "_", ALNUM, 43),
    "figma": simple("figd" + "_", WORD, 40),
    "postman": lambda r: "PMAK" + "-" + chars(r, HEX, 24) + "-" + chars(r, HEX, 34),
    "grafana": lambda r: "glsa" + "_" + chars(r, ALNUM, 32) + "_" + chars(r, HEX, 8),
    "newrelic": simple("NRAK" + "-", UPPER, 27),
    "sentry": simple("sntrys" + "_", ALNUM, 60),
    "sourcegraph": simple("sgp" + "_", HEX, 40),
    "age": simple("AGE-SECRET" + "-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "jwt": jwt,
    "url-password": simple("", ALNUM + "!*-_~", 14),
    "store-password": simple("", ALNUM + "/#?!$", 16),
    "url-token": simple("", ALNUM, 40),
}

# What must stand around a value for its kind to be known.
SHAPED: dict[str, str] = {
    "slack-webhook": "https://hooks.slack.com/services/{}",
    "discord-webhook": "https://discord.com/api/webhooks/123456789012345678/{}",
    "url-password": "https://deploy:{}@git.example.org/x.git",
    "store-password": "postgresql+asyncpg://app:{}@db.example.org:5432/main",
    "url-token": "https://{}:x-oauth-basic@github.com/acme/widget.git",
}


def pem(
    rng: random.Random, kind: str = "RSA ", lines: int = 6, end: bool = True, header: bool = False
) -> str:
    """A private key's block; `kind` as in the BEGIN line."""
    alphabet = ALNUM + "+/"
    body = [chars(rng, alphabet, 64) for _ in range(lines - 1)] + [chars(rng, alphabet, 30) + "=="]
    top = f"-----BEGIN {kind}" + "PRIVATE KEY-----"
    headers = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0011223344556677", ""] if header else []
    bottom = [f"-----END {kind}" + "PRIVATE KEY-----"] if end else []
    return "\n".join([top, *headers, *body, *bottom])
