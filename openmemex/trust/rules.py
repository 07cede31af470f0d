"""The table of secrets that are known by their look: one row a kind.

To add a kind, add a row, and its example to tests/trust/secret_examples.py (a test asks for it). A row costs
a clean text one substring search; its pattern is compiled when its literal is met for the first time.

What a pattern must keep to:
* `literal` stands in every match. Best the pattern begins with it: then the search for it is quick.
* Word characters are ASCII, never `\\b`: to Python a Chinese character next to a token is a letter.
* A match starts only where a run of its characters starts, or every repeat before its last one is short: so
  that no text costs more than in proportion to its length (a test tries them all).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

_WORD = "[A-Za-z0-9]"
_WORD_ = "[A-Za-z0-9_-]"
_HEX = "[0-9a-f]"
_END = r"(?![A-Za-z0-9])"
# Behind an escape that was left in place, a token starts: the \n of a JSON text, the %3D of a URL.
_ESCAPED = r"(?<=\\[nrt])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])"


class Rule(NamedTuple):
    """One kind of secret, or one spelling of it.

    `what` is said to people ("GitHub token"). Group `group` of `pattern` is the secret's value; `check` looks
    at that value and answers whether it can be real, where the look alone does not decide.
    """

    id: str
    what: str
    literal: str
    pattern: str
    group: int = 0
    check: Callable[[str], bool] | None = None


# Words that stand for a secret in documentation. Only a value made of nothing else is a stand-in: a real one
# may hold any of them somewhere.
_STAND_INS = frozenset(
    word
    for line in (
        "a abc access account actual admin api api03 app auth bar bearer bot change changeit changeme",
        "client code credential credentials db demo dummy example fake foo from generated goes here",
        "hidden id insert is it key live masked me mine my mypass mypassword mysecret mytoken name new",
        "none null omitted org pass passphrase passwd password personal placeholder private project pw",
        "pwd real redacted removed replace sample secret some string test the this to todo token user",
        "username v1 value with you your yourkey yourpassword yoursecret yourtoken",
    )
    for word in line.split()
)
_WRAPPED = (("<", ">"), ("${", "}"), ("$(", ")"), ("{", "}"), ("[", "]"), ("%", "%"), ("__", "__"))
_FORMATS = frozenset(("%s", "%v", "%d", "%p", "...", "{}", "x-oauth-basic"))
_VARIABLE = re.compile(r"\$[A-Z_][A-Z0-9_]*\Z")


def is_masked(value: str) -> bool:
    """Whether `value` is what masking leaves: at most its first 4 characters and a third, then only `x`."""
    kept = min(4, len(value) // 3)
    return not value[kept:].strip("x\r\n")


def is_stand_in(value: str) -> bool:
    """Whether `value` as a whole only stands for a secret: `<password>`, `${PW}`, `xxxx`, `your-token`."""
    if len(set(value)) <= 1 or value in _FORMATS or _VARIABLE.match(value):
        return True
    for opening, closing in _WRAPPED:
        if value.startswith(opening) and value.endswith(closing) and len(value) > len(opening) + len(closing):
            return True
    words = re.split(r"[-_. \[\]]+", value.lower().strip("[]"))
    return all(word in _STAND_INS or not word.strip("x*") for word in words)


def random_part(prefix: int) -> Callable[[str], bool]:
    """A check for tokens whose first `prefix` characters are fixed.

    The rest is no stand-in, is not counting (abcdef…), is not mostly `x`, and has two of digits, lower and
    upper case, as a random value of that length has.
    """

    def check(value: str) -> bool:
        rest = value[prefix:]
        if is_stand_in(rest) or _counts_up(rest) or sum(c in "xX*." for c in rest) * 10 >= len(rest) * 7:
            return False
        return kinds_of(rest) >= 2

    return check


def kinds_of(text: str) -> int:
    """How many of digits, lower case and upper case `text` holds."""
    return any(c.isdigit() for c in text) + any(c.islower() for c in text) + any(c.isupper() for c in text)


def _counts_up(text: str) -> bool:
    if len(text) < 8:
        return False
    steps = sum(1 for a, b in pairwise(text) if ord(b) - ord(a) == 1)
    return steps * 10 >= (len(text) - 1) * 7


def _aws(value: str) -> bool:
    # Amazon's own documentation ends its keys in EXAMPLE.
    return not value.endswith("EXAMPLE") and len(set(value[4:])) > 2 and not _counts_up(value[4:])


def _no_stand_in(value: str) -> bool:
    return not is_stand_in(value)


def _starting(literal: str, word: str = r"A-Za-z0-9_") -> str:
    """`literal` where it starts a run of `word` characters. First, so that re can search for it."""
    text = re.escape(literal)
    return rf"{text}(?:(?<![{word}]{text})|(?<=\\[nrt]{text})|(?<=%[0-9A-Fa-f][0-9A-Fa-f]{text}))"


def _tokens(
    id_: str, what: str, prefixes: str, body: str, check: Callable[[str], bool] | None = None
) -> list[Rule]:
    """Rules for tokens with a fixed prefix, one of `prefixes` (parted by blanks), and a random rest."""
    return [
        Rule(id_, what, prefix, _starting(prefix) + body, 0, check or random_part(len(prefix)))
        for prefix in prefixes.split()
    ]


_USER = r"[^\s:/?#@\"'`<>|\\]{0,200}"
# A port is no password. Up to the last @ of the address's first part, as browsers and curl read it; ASCII and
# Latin letters only, because other scripts write on without a blank behind the address.
_NO_PORT = r"(?![0-9]{1,5}[/?#,])"
_PASSWORD = r"[!$%&()*+,.0-9:;=@A-Z\[\]^_a-z{|}~\u00c0-\u024f-]{1,200}"
_DB_PASSWORD = r"[!#$%&()*+,./0-9:;=?@A-Z\[\]^_a-z{|}~\u00c0-\u024f-]{1,200}"
_HOST = r"@(?=[A-Za-z0-9\[/_${<*%.-])"
_STORES = (
    "postgres postgresql mysql mariadb mongodb redis rediss amqp amqps mssql sqlserver oracle "
    "clickhouse cockroachdb nats kafka ldap ldaps mqtt mqtts neo4j bolt cassandra influxdb +srv "
    "+psycopg +psycopg2 +asyncpg +pymysql +aiomysql +mysqldb +mysqlconnector +pyodbc +pymssql "
    "+oracledb +cx_oracle +tls +ssl "
)
_STORE = "(?:" + "|".join(rf"(?<={re.escape(store)}://)" for store in _STORES.split()) + ")"

RULES: tuple[Rule, ...] = (
    # code hosts
    *_tokens("github", "GitHub token", "ghp_ gho_ ghu_ ghr_", f"{_WORD}{{30,255}}"),
    *_tokens("github-app", "GitHub token", "ghs_", r"[A-Za-z0-9_.-]{29,1000}[A-Za-z0-9_]"),
    *_tokens("github-fine", "GitHub token", "github_pat_", r"[A-Za-z0-9_]{50,255}"),
    *_tokens(
        "gitlab",
        "GitLab token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- glsoat- gloas-",
        rf"{_WORD_}{{20,300}}(?:\.[0-9a-z]{{2}}\.[0-9a-z]{{7,9}})?",
    ),
    *_tokens("npm", "npm token", "npm_", f"{_WORD}{{36,255}}"),
    *_tokens("pypi", "PyPI token", "pypi-", f"{_WORD_}{{50,1000}}"),
    *_tokens("rubygems", "RubyGems key", "rubygems_", f"{_HEX}{{48}}"),
    *_tokens("docker", "Docker token", "dckr_pat_", f"{_WORD_}{{27,64}}"),
    *_tokens("atlassian", "Atlassian token", "ATATT3", r"[A-Za-z0-9_=-]{50,500}"),
    # model providers
    *_tokens("anthropic", "Anthropic key", "sk-ant-", f"{_WORD_}{{20,400}}"),
    *_tokens("openrouter", "OpenRouter key", "sk-or-", f"{_WORD_}{{20,400}}"),
    *_tokens("openai-project", "OpenAI key", "sk-proj- sk-svcacct- sk-admin-", f"{_WORD_}{{20,400}}"),
    *_tokens("sk", "API key", "sk-", f"{_WORD}{{20,400}}"),
    *_tokens("groq", "Groq key", "gsk_", f"{_WORD}{{20,255}}"),
    *_tokens("huggingface", "Hugging Face token", "hf_ api_org_", f"{_WORD}{{30,255}}"),
    *_tokens("replicate", "Replicate token", "r8_", f"{_WORD}{{32,64}}"),
    *_tokens("perplexity", "Perplexity key", "pplx-", f"{_WORD}{{32,128}}"),
    *_tokens("xai", "xAI key", "xai-", f"{_WORD}{{40,128}}"),
    *_tokens("nvidia", "NVIDIA key", "nvapi-", f"{_WORD_}{{40,128}}"),
    *_tokens("langsmith", "LangSmith key", "lsv2_pt_ lsv2_sk_", f"{_HEX}{{32}}_{_HEX}{{10}}"),
    # clouds
    *_tokens("aws", "AWS access key", "AKIA ASIA ABIA ACCA", f"[A-Z0-9]{{16}}{_END}", _aws),
    *_tokens("google", "Google key", "AIza", f"{_WORD_}{{35}}{_END}"),
    *_tokens("google-client", "Google client secret", "GOCSPX-", f"{_WORD_}{{28,64}}"),
    *_tokens("google-oauth", "Google access token", "ya29.", r"[A-Za-z0-9_.-]{20,1000}[A-Za-z0-9_-]"),
    Rule(
        "azure-ad",
        "Azure client secret",
        "Q~",
        rf"(?:(?<![A-Za-z0-9_~.-])|{_ESCAPED})[A-Za-z0-9_~.-]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{30,33}}[A-Za-z0-9_~-]",
    ),
    *_tokens("alibaba", "Alibaba access key", "LTAI", f"{_WORD}{{12,30}}{_END}"),
    *_tokens("tencent", "Tencent secret id", "AKID", f"{_WORD}{{13,40}}{_END}"),
    *_tokens("digitalocean", "DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", f"{_HEX}{{64}}"),
    *_tokens("databricks", "Databricks token", "dapi", f"{_HEX}{{32}}(?:-[0-9])?{_END}"),
    *_tokens("vault", "Vault token", "hvs. hvb. hvr.", f"{_WORD_}{{24,400}}"),
    *_tokens("pulumi", "Pulumi token", "pul-", f"{_HEX}{{40}}"),
    *_tokens("fly", "Fly.io token", "fo1_", f"{_WORD_}{{40,128}}"),
    *_tokens("doppler", "Doppler token", "dp.pt.", f"{_WORD}{{40,64}}"),
    *_tokens("supabase", "Supabase token", "sbp_", f"{_HEX}{{40}}"),
    *_tokens(
        "planetscale", "PlanetScale secret", "pscale_", r"(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{30,64}[A-Za-z0-9_]"
    ),
    # chat
    *_tokens(
        "slack",
        "Slack token",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xoxb- xoxe.xoxp- xapp-",
        "[A-Za-z0-9-]{12,300}[A-Za-z0-9]",
    ),
    Rule(
        "slack-webhook",
        "Slack webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(T[A-Z0-9]{6,20}/[A-Za-z0-9/]{20,100})",
        1,
        lambda value: not is_stand_in(value.rpartition("/")[2]),
    ),
    Rule(
        "discord-webhook",
        "Discord webhook",
        "/api/webhooks/",
        r"/api/webhooks/[0-9]{15,21}/([A-Za-z0-9_-]{30,100})",
        1,
        random_part(0),
    ),
    Rule(
        "telegram",
        "Telegram bot token",
        ":AA",
        rf"(?:(?<![A-Za-z0-9_])|(?<=/bot)|{_ESCAPED})[0-9]{{8,10}}:AA{_WORD_}{{33}}(?![A-Za-z0-9_-])",
        0,
        random_part(13),
    ),
    # payment, mail, work
    *_tokens("stripe", "Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", f"{_WORD}{{16,255}}"),
    *_tokens("stripe-webhook", "Stripe webhook secret", "whsec_", r"[A-Za-z0-9+/=]{24,128}"),
    *_tokens("shopify", "Shopify token", "shpat_ shpss_ shpca_ shppa_", "[0-9a-fA-F]{32}"),
    *_tokens("square", "Square token", "sq0atp- sq0csp-", f"{_WORD_}{{22,64}}"),
    *_tokens("twilio", "Twilio key", "SK", f"{_HEX}{{32}}{_END}"),
    *_tokens("sendgrid", "SendGrid key", "SG.", rf"{_WORD_}{{16,32}}\.{_WORD_}{{32,64}}"),
    *_tokens("mailgun", "Mailgun key", "key-", f"{_HEX}{{32}}{_END}"),
    *_tokens("brevo", "Brevo key", "xkeysib-", f"{_HEX}{{64}}-{_WORD}{{16}}"),
    *_tokens("linear", "Linear key", "lin_api_ lin_oauth_", f"{_WORD}{{32,64}}"),
    *_tokens("notion", "Notion token", "ntn_", f"{_WORD}{{40,64}}"),
    *_tokens("notion-old", "Notion token", "secret_", f"{_WORD}{{43}}{_END}"),
    *_tokens("figma", "Figma token", "figd_", f"{_WORD_}{{38,64}}"),
    *_tokens("postman", "Postman key", "PMAK-", f"{_HEX}{{24}}-{_HEX}{{34}}"),
    *_tokens("grafana", "Grafana token", "glsa_", f"{_WORD}{{32}}_[0-9a-fA-F]{{8}}"),
    *_tokens("newrelic", "New Relic key", "NRAK-", "[A-Z0-9]{27}"),
    *_tokens("sentry", "Sentry token", "sntrys_ sntryu_", r"[A-Za-z0-9_=+/-]{40,500}"),
    *_tokens("sourcegraph", "Sourcegraph token", "sgp_", f"(?:{_WORD}{{1,20}}_)?{_HEX}{{40}}"),
    # anywhere
    *_tokens("age", "age private key", "AGE-SECRET-KEY-1", "[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    Rule(
        "jwt",
        "JSON Web Token",
        "eyJ",
        _starting("eyJ", "A-Za-z0-9_-")
        + rf"{_WORD_}{{10,4000}}\.{_WORD_}{{8,8000}}(?:\.{_WORD_}{{1,4000}}){{0,3}}",
    ),
    Rule(
        "url-password",
        "password in a URL",
        "://",
        rf"://(?<=[A-Za-z0-9+.-]://){_USER}:{_NO_PORT}({_PASSWORD}){_HOST}",
        1,
        _no_stand_in,
    ),
    # In the address of a database a raw / or # in the password is common; in a web address it ends the host.
    Rule(
        "store-password",
        "password in a connection string",
        "://",
        rf"://{_STORE}{_USER}:{_NO_PORT}({_DB_PASSWORD}){_HOST}",
        1,
        _no_stand_in,
    ),
    Rule(
        "url-token",
        "token in a URL",
        "://",
        rf"://(?<=[A-Za-z0-9+.-]://)({_WORD}{{20,255}})(?::(?:x-oauth-basic)?)?@",
        1,
        random_part(0),
    ),
)
