# ruff: noqa: E501, SIM905 - sentences and lists of words, which read best whole
"""Varied developer notes with known-item queries: devnotes.py FOLDER [--notes 1000] [--seed 7]

Writes FOLDER/corpus.jsonl ({id, text, tags, lang}) and FOLDER/queries.jsonl ({id, text, gold, category, lang}),
as `retrieval.py` reads them. English, Chinese, and a few notes that mix both. Each note is about one thing of
one service, and the same thing is noted of several sibling services with other values, so that the right note
has near-duplicates. Each note has three queries:

- `rare`: the one token that a person remembers: a port, an error code, a path, a flag, part of an identifier,
  often in another spelling than the note's (lower case, other punctuation, parts alone);
- `paraphrase`: the same matter in other words, some of them kept;
- `question`: a whole question, with the words of grammar that questions have.

Topics, notes and queries were written together, before any ranking was looked at. Two plain rules keep the set
fair: a remembered token must tell its note from all others, and a paraphrase or a question shares words with
its note (two besides the service's name, where its forms allow). Same seed, same bytes.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Topic(NamedTuple):
    """One kind of note: ways to write it, and its queries. `rare` is the slot whose value nobody else has."""

    lang: str
    rare: str
    notes: tuple[str, ...]
    paraphrase: tuple[str, ...]
    question: tuple[str, ...]


SERVICES = (
    "billing-api billing-worker billing-export checkout-web checkout-api auth-gateway auth-sessions "
    "notification-hub mail-sender sms-relay search-indexer search-frontend inventory-sync inventory-api "
    "payment-router payment-ledger report-builder report-scheduler user-profile user-import image-resizer "
    "video-transcoder feature-flags rate-limiter audit-log webhook-dispatcher event-bridge data-lake-"
    "loader fraud-scorer price-engine catalog-api catalog-cache shipping-quotes shipping-labels loyalty-"
    "points chat-backend presence-tracker map-tiles geo-lookup document-store"
).split()
PEOPLE = (
    "Anika Björn Chidi Dorota Emeka Farid Greta Hiro Ines Jonas Kavya Lucía Marek Nadia Oskar Priya "
    "Quentin Rosa Søren Tamsin Umar Vera Wen Ximena Yusuf Zofia"
).split()
PEOPLE_ZH = "陈静 李强 王芳 赵磊 周敏 吴涛 孙丽 黄伟 林娜 郭鹏 何雪 马超 罗兰 梁栋 宋佳 唐宁".split()
WORDS = (
    "retry budget pool idle cache warm shard lease token drain batch cursor fence quota replay spill "
    "prune throttle probe ledger anchor beacon digest vector window bucket signal orbit mirror canary "
    "stale hedge burst slot epoch parcel ticket voucher ribbon lantern harbor meadow copper willow falcon"
).split()
ENDINGS = "Ms Limit Size Count Ratio Timeout Enabled Threshold Depth Factor".split()


class Values:
    """Draws the values of a note's slots; what should be unique is never drawn twice."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._drawn: set[str] = set()
        self._makers: dict[str, Callable[[], str]] = {
            "port": lambda: str(self._random.randint(2100, 59999)),
            "err": self._error,
            "ver": lambda: ".".join(str(self._random.randint(low, 40)) for low in (1, 0, 0)),
            "ident": self._identifier,
            "path": self._path,
            "flag": lambda: "--" + "-".join(self._random.sample(WORDS, 3)),
            "env": lambda: "_".join(word.upper() for word in self._random.sample(WORDS, 3)),
            "host": lambda: (
                f"{self._random.choice(WORDS)}-{self._random.choice(WORDS)}-{self._random.randint(1, 99):02d}"
                f".{self._random.choice(('eu', 'us', 'ap'))}.internal"
            ),
            "table": lambda: "_".join(self._random.sample(WORDS, 3)) + "_rows",
            "commit": lambda: f"{self._random.getrandbits(40):010x}",
            "ticket": lambda: (
                f"{self._random.choice(('OPS', 'PLAT', 'PAY', 'WEB', 'DATA'))}-{self._random.randint(1000, 9999)}"
            ),
            "ip": lambda: (
                f"10.{self._random.randint(0, 255)}.{self._random.randint(0, 255)}.{self._random.randint(1, 254)}"
            ),
            "person": lambda: self._random.choice(PEOPLE),
            "person_zh": lambda: self._random.choice(PEOPLE_ZH),
            "date": lambda: f"2026-{self._random.randint(1, 12):02d}-{self._random.randint(1, 28):02d}",
            "n": lambda: str(self._random.randint(2, 90)),
            "m": lambda: str(
                self._random.choice((100, 150, 200, 250, 300, 400, 500, 750, 900, 1200, 1500, 3000))
            ),
            "day": lambda: self._random.choice(
                "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
            ),
            "day_zh": lambda: "周" + self._random.choice("一二三四五六日"),
        }

    UNIQUE = frozenset(
        ("port", "err", "ver", "ident", "path", "flag", "env", "host", "table", "commit", "ticket", "ip")
    )

    def draw(self, slot: str) -> str:
        """A value for `slot`."""
        while True:
            value = self._makers[slot]()
            if slot not in self.UNIQUE:
                return value
            key = value.lower()
            if key not in self._drawn:
                self._drawn.add(key)
                return value

    def _error(self) -> str:
        kind = self._random.randrange(3)
        if kind == 0:
            return f"E{self._random.randint(10000, 99999)}"
        if kind == 1:
            return "ERR_" + "_".join(word.upper() for word in self._random.sample(WORDS, 3))
        return "".join(word.capitalize() for word in self._random.sample(WORDS, 3)) + "Error"

    def _identifier(self) -> str:
        first, second = self._random.sample(WORDS, 2)
        while f"{first} {second}" in self._drawn:
            first, second = self._random.sample(WORDS, 2)
        self._drawn.add(f"{first} {second}")
        return first + second.capitalize() + self._random.choice(ENDINGS)

    def _path(self) -> str:
        first, second, third = self._random.sample(WORDS, 3)
        ending = self._random.choice((".toml", ".yaml", ".py", ".go", ".sql", ".tf", ".ts", ".sh"))
        return f"{self._random.choice(('deploy', 'src', 'infra', 'tools', 'config'))}/{first}/{second}_{third}{ending}"


def remembered(slot: str, value: str, chance: random.Random) -> str:
    """`value` as somebody who half remembers it types it; still enough to tell it from every other."""
    kind = chance.randrange(4)
    if slot == "ident":
        parts = _camel(value)
        spellings = [value, "_".join(parts), value.lower(), f"{parts[0]} {parts[1]}"]
    elif slot == "err" and "_" in value:
        spellings = [value, value.lower(), value.replace("_", " ").lower(), value.replace("_", "-")]
    elif slot == "err":
        spellings = [value, value.lower(), f"error {value}", f"{value}?"]
    elif slot == "path":
        spellings = [
            value,
            value.rpartition("/")[2],
            value.rpartition("/")[2].partition(".")[0],
            "./" + value,
        ]
    elif slot == "flag":
        spellings = [value, value[2:], value[2:].replace("-", "_"), value[2:].replace("-", " ")]
    elif slot == "env":
        spellings = [value, "$" + value, value.lower(), value.replace("_", " ").title()]
    elif slot == "host":
        spellings = [value, value.partition(".")[0], value.upper(), f"ssh {value}"]
    elif slot == "table":
        spellings = [value, value.upper(), value.replace("_", " "), f"select * from {value}"]
    elif slot == "commit":
        spellings = [value, value[:8], value.upper(), value[:7]]
    elif slot == "ticket":
        spellings = [value, value.lower(), value.replace("-", " "), f"[{value}]"]
    elif slot == "ver":
        spellings = [value, f"v{value}", f"version {value}", f"=={value}"]
    elif slot == "port":
        spellings = [value, f":{value}", f"port {value}", f"localhost:{value}"]
    else:
        spellings = [value, value, f"{value}/32", f"http://{value}/"]
    return spellings[kind]


def _camel(value: str) -> list[str]:
    parts: list[str] = []
    for char in value:
        if char.isupper() or not parts:
            parts.append("")
        parts[-1] += char.lower()
    return parts


def service_said(service: str, chance: random.Random) -> str:
    """A service's name as people write it."""
    return chance.choice((service, service.replace("-", " "), service, service.replace("-", "_")))


SERVICES_ZH = (
    "计费接口 计费任务 账单导出 结算页面 结算接口 登录网关 会话服务 通知中心 邮件发送 短信通道 搜索索引 搜索前端 库存同步 库存接口 支付路由 支付账本 报表生成 报表调度 用户资料 用户导入 "
    "图片缩放 视频转码 功能开关 限流服务 审计日志 回调分发 事件总线 数据湖导入 风控评分 价格引擎 商品目录 目录缓存 运费报价 面单打印 积分服务 聊天后端 在线状态 地图瓦片 地理查询 文档存储"
).split()

TOPICS: tuple[Topic, ...] = (
    Topic(
        "en",
        "port",
        (
            "{svc} listens on port {port} in staging because 8080 is taken by the sidecar.",
            "In staging we moved {svc} to {port}; the old port clashed with the metrics sidecar.",
        ),
        ("staging port number used by {svc}", "{svc} which port does it bind to in the staging environment"),
        (
            "What port is {svc} listening on in staging?",
            "Why isn't {svc} on 8080 in staging, and where is it then?",
        ),
    ),
    Topic(
        "en",
        "err",
        (
            "{err} from {svc} means the upstream certificate expired; renew it with certbot and restart the pod.",
            "If {svc} logs {err}, the TLS certificate of the upstream ran out. Renew and restart, nothing else helps.",
        ),
        (
            "{svc} expired upstream TLS certificate what to renew",
            "certificate trouble behind {svc} fix by renewing",
        ),
        (
            "What should I do when {svc} complains because a certificate of its upstream has expired?",
            "How do we fix the expired upstream certificate for {svc}?",
        ),
    ),
    Topic(
        "en",
        "ver",
        (
            "Pin libpq to {ver} for {svc}: later releases leak file handles on reconnect.",
            "{svc} must stay on libpq {ver}. Anything newer leaks handles whenever the connection drops.",
        ),
        ("libpq version pinned in {svc} due to handle leak", "why {svc} can't upgrade libpq leaking handles"),
        ("Which libpq release does {svc} have to be pinned to?", "Why are we not upgrading libpq in {svc}?"),
    ),
    Topic(
        "en",
        "ident",
        (
            "Set {ident} to {m} in {svc}; with the default of 30 the connection pool starves under load tests.",
            "{svc}: {ident} = {m}. The default (30) starves the connection pool as soon as we load test.",
        ),
        (
            "{svc} pool starvation under load setting to raise",
            "connection pool size fix for {svc} in load tests",
        ),
        (
            "Which setting of {svc} keeps the connection pool from starving in load tests?",
            "What did we change so that {svc} survives the load test without running out of connections?",
        ),
    ),
    Topic(
        "en",
        "path",
        (
            "The nginx template of {svc} lives in {path}; the copy under /etc is overwritten on every deploy.",
            "Edit {path} when you need another nginx rule for {svc}. Changes in /etc/nginx vanish with the next deploy.",
        ),
        (
            "where to change nginx rules for {svc} so deploy keeps them",
            "{svc} nginx configuration source file",
        ),
        (
            "Where do I edit the nginx configuration of {svc} so that it isn't overwritten?",
            "Why did my change to nginx for {svc} disappear after the deploy?",
        ),
    ),
    Topic(
        "en",
        "flag",
        (
            "Run the {svc} migrations with {flag}, otherwise the big table is locked for about {n} minutes.",
            "Without {flag} the schema migration of {svc} holds a table lock for {n} minutes. Always pass it.",
        ),
        (
            "avoid table lock during {svc} schema migration option",
            "{svc} migrate without locking the large table",
        ),
        (
            "How can we migrate the schema of {svc} without locking the table for so long?",
            "Which option do I pass to the migrations of {svc} to avoid the lock?",
        ),
    ),
    Topic(
        "en",
        "env",
        (
            "{svc} reads its signing key from {env}; the vault path is only used in production.",
            "Locally, export {env} before starting {svc}: that's where the signing key comes from. Production uses vault.",
        ),
        (
            "environment variable with signing key for {svc} on a laptop",
            "{svc} local signing key source instead of vault",
        ),
        (
            "Where does {svc} take its signing key from when I run it locally?",
            "Which variable must be exported so that {svc} can sign things outside production?",
        ),
    ),
    Topic(
        "en",
        "host",
        (
            "The read replica for {svc} is {host}; never point the nightly job at the primary.",
            "Nightly jobs of {svc} must query {host} (read replica). Hitting the primary slowed everybody down.",
        ),
        ("replica database host for nightly {svc} job", "{svc} read only database server to use at night"),
        (
            "Which database host should the nightly job of {svc} talk to?",
            "What's the read replica we use for {svc}?",
        ),
    ),
    Topic(
        "en",
        "table",
        (
            "{svc} keeps soft-deleted customers in {table} for {n} days; a purge job empties it on Sundays.",
            "Deleted customers of {svc} aren't gone: they stay in {table} {n} days until Sunday's purge.",
        ),
        (
            "{svc} soft deleted customers retention table purge",
            "where {svc} holds removed customers before the purge",
        ),
        (
            "How long does {svc} keep customers that were deleted, and where?",
            "In which table do the deleted customers of {svc} end up?",
        ),
    ),
    Topic(
        "en",
        "commit",
        (
            "Commit {commit} broke the retry loop of {svc}; reverted by {person} on {date}.",
            "{person} reverted {commit} on {date} because {svc} kept retrying forever.",
        ),
        ("revert of endless retries in {svc}", "{svc} retry loop regression which commit"),
        ("Who reverted the commit that broke retries in {svc}?", "Which commit made {svc} retry forever?"),
    ),
    Topic(
        "en",
        "ticket",
        (
            "{ticket}: {svc} double-charged {n} customers after the clock change; refunds went out on {date}.",
            "After daylight saving began, {svc} charged {n} customers twice ({ticket}). Refunded {date}.",
        ),
        (
            "{svc} charged customers twice clock change refunds",
            "double billing incident {svc} daylight saving",
        ),
        (
            "When did we refund the customers that {svc} had charged twice?",
            "What happened to {svc} when the clocks changed?",
        ),
    ),
    Topic(
        "en",
        "ip",
        (
            "The partner bank only accepts traffic of {svc} from {ip}; ask {person} before changing the NAT gateway.",
            "{ip} is the allow-listed egress address of {svc} at the bank. {person} owns the NAT change process.",
        ),
        ("egress address allow list bank for {svc}", "{svc} outbound IP whitelisted at partner bank"),
        (
            "From which address does the bank accept requests of {svc}?",
            "Whom do I ask before I touch the NAT gateway that {svc} uses towards the bank?",
        ),
    ),
    Topic(
        "en",
        "ident",
        (
            "We chose Avro over JSON for the events of {svc} since {ident} made payloads three times larger.",
            "Decision: {svc} publishes Avro, not JSON. JSON with {ident} tripled the payload size.",
        ),
        ("reason for Avro events in {svc} instead of JSON", "{svc} event format decision payload size"),
        (
            "Why does {svc} publish Avro and not JSON?",
            "What was the reason to drop JSON for the events of {svc}?",
        ),
    ),
    Topic(
        "en",
        "path",
        (
            "Never run {path} against the {svc} production database: it truncates before it seeds.",
            "{path} truncates every table of {svc} before seeding. It's for laptops, not for production!",
        ),
        ("dangerous seed script {svc} truncates tables", "{svc} seeding wipes data don't use in production"),
        (
            "Is it safe to seed the production database of {svc} with our script?",
            "Which script of {svc} must never be run in production?",
        ),
    ),
    Topic(
        "en",
        "port",
        (
            "The debugger of {svc} attaches on {port}; forward it with kubectl port-forward from the dev namespace.",
            "To debug {svc} remotely: kubectl port-forward in the dev namespace, then attach to {port}.",
        ),
        ("remote debugging {svc} port forward", "attach debugger {svc} dev namespace kubectl"),
        ("How do I attach a debugger to {svc} in the dev namespace?", "On which port can {svc} be debugged?"),
    ),
    Topic(
        "en",
        "err",
        (
            "{err} in {svc} is harmless: the cache node restarts every night at 03:{n}0 and clients reconnect.",
            "Ignore {err} from {svc} around three at night. The cache restarts then and everything reconnects.",
        ),
        ("nightly cache restart error {svc} can be ignored", "harmless reconnect message {svc} at night"),
        (
            "Should I worry about the error that {svc} logs every night around three?",
            "Can the nightly reconnect errors of {svc} be ignored?",
        ),
    ),
    Topic(
        "en",
        "ver",
        (
            "{svc} is the last service on Java 11; moving to 21 waits for the vendor SDK {ver}.",
            "Vendor SDK {ver} is what blocks {svc} from leaving Java 11 for 21.",
        ),
        ("{svc} Java upgrade blocked by vendor SDK", "what keeps {svc} on old Java"),
        ("Why is {svc} still on Java 11?", "What are we waiting for before {svc} can move to Java 21?"),
    ),
    Topic(
        "en",
        "flag",
        (
            "Start the {svc} tests with {flag} on macOS, or the file watcher exhausts the descriptors.",
            "On a Mac the test suite of {svc} needs {flag}; the watcher opens too many descriptors without it.",
        ),
        ("macOS too many open files running {svc} tests", "{svc} test suite on a Mac file descriptors"),
        (
            "What do I need to run the tests of {svc} on a Mac?",
            "Why do the tests of {svc} run out of descriptors on macOS?",
        ),
    ),
    Topic(
        "en",
        "env",
        (
            "Tracing in {svc} is off unless {env} is set to 1; sampling is {n} percent.",
            "{env}=1 turns on tracing for {svc}, sampled at {n}%.",
        ),
        ("enable tracing {svc} sampling rate", "{svc} turn on distributed traces"),
        ("How is tracing switched on in {svc}?", "What share of the requests of {svc} do we trace?"),
    ),
    Topic(
        "en",
        "host",
        (
            "Grafana dashboards for {svc} moved to {host}; the old links redirect until {date}.",
            "New Grafana address for the {svc} dashboards: {host}. Redirects from the old one end on {date}.",
        ),
        ("{svc} dashboards new address Grafana", "Grafana link {svc} after the move"),
        ("Where are the dashboards of {svc} now?", "Until when do the old Grafana links of {svc} work?"),
    ),
    Topic(
        "en",
        "table",
        (
            "Add an index on {table}.created_at before the {svc} report: the sequential scan took {n} minutes.",
            "The report of {svc} scanned {table} for {n} minutes until we indexed created_at.",
        ),
        ("slow {svc} report missing index", "{svc} report sequential scan speed up"),
        ("Why was the report of {svc} so slow?", "Which index did the report of {svc} need?"),
    ),
    Topic(
        "en",
        "ticket",
        (
            "{person} is on call for {svc} until {date}; escalations go through {ticket}.",
            "On-call for {svc}: {person}, through {date}. Use {ticket} to escalate.",
        ),
        ("{svc} on call person escalation", "who carries the pager for {svc}"),
        ("Who is on call for {svc}?", "How do I escalate a problem with {svc}?"),
    ),
    Topic(
        "en",
        "ident",
        (
            "The feature toggle {ident} hides the new refund screen of {svc} until legal signs off.",
            "Legal hasn't signed off the refund screen of {svc} yet; it stays behind {ident}.",
        ),
        ("{svc} refund screen hidden toggle legal approval", "refund UI of {svc} behind a flag"),
        (
            "Why can't users see the new refund screen of {svc}?",
            "Which toggle do we flip once legal approves the refund screen of {svc}?",
        ),
    ),
    Topic(
        "en",
        "path",
        (
            "{svc} fixtures are generated: change {path} and run make fixtures, don't edit the JSON by hand.",
            "Don't touch the JSON fixtures of {svc}. They come from {path} through make fixtures.",
        ),
        ("regenerate {svc} test fixtures generator", "{svc} JSON fixtures where do they come from"),
        (
            "How do I change the fixtures of {svc}?",
            "Why shouldn't I edit the JSON fixtures of {svc} by hand?",
        ),
    ),
    Topic(
        "en",
        "err",
        (
            "When {svc} fails with {err} during docker build, clear the BuildKit cache; the layer is corrupt.",
            "docker build of {svc} stopped with {err}: a corrupt layer. Pruning the BuildKit cache fixed it.",
        ),
        ("docker build {svc} corrupt layer cache prune", "{svc} image build broken BuildKit"),
        (
            "How did we fix the docker build of {svc}?",
            "What to do if building the image of {svc} fails on a corrupt layer?",
        ),
    ),
    Topic(
        "en",
        "ver",
        (
            "Upgrade order for {svc}: schema first, then workers, then web; learned the hard way with {ver}.",
            "Release {ver} of {svc} taught us the order: schema, workers, web. Not the other way round.",
        ),
        ("{svc} upgrade sequence schema workers web", "rollout order when releasing {svc}"),
        (
            "In which order do we upgrade the parts of {svc}?",
            "What did we learn from the bad release of {svc}?",
        ),
    ),
    Topic(
        "en",
        "env",
        (
            "{svc} sends mail through the sandbox unless {env} says live; twice we mailed real users from staging.",
            "Mail sandbox: {svc} only reaches real inboxes with {env}=live. Staging mailed users twice before that.",
        ),
        ("prevent {svc} staging from mailing real users", "{svc} mail sandbox live switch"),
        (
            "How do we make sure that {svc} doesn't send mail to real users from staging?",
            "What has to be set before {svc} really sends mail?",
        ),
    ),
    Topic(
        "en",
        "commit",
        (
            "Bisect ended at {commit}: {svc} allocates a buffer for each header since then, memory grew {n} percent.",
            "Memory of {svc} is up {n}% since {commit}, a buffer is allocated per header now (found by bisect).",
        ),
        ("{svc} memory growth bisect header buffers", "memory regression in {svc} cause"),
        (
            "Why does {svc} need more memory than before?",
            "What did the bisect of the memory growth in {svc} find?",
        ),
    ),
    Topic(
        "en",
        "host",
        (
            "Kafka broker {host} has a slow disk; keep partitions of {svc} off it until the swap on {date}.",
            "Don't place {svc} partitions on {host}: slow disk, replaced {date}.",
        ),
        ("{svc} kafka partitions avoid slow broker disk", "broker with the bad disk {svc}"),
        (
            "Which Kafka broker should hold no partitions of {svc}?",
            "When is the slow disk under the partitions of {svc} swapped?",
        ),
    ),
    Topic(
        "en",
        "flag",
        (
            "Restore {svc} backups with {flag}; without it foreign keys are checked row by row and it takes {n} hours.",
            "Restoring a {svc} backup takes {n} hours unless {flag} defers the foreign key checks.",
        ),
        ("faster backup restore {svc} foreign keys", "{svc} restore takes hours option"),
        (
            "How can a backup of {svc} be restored faster?",
            "Why does it take hours to restore {svc} from a backup?",
        ),
    ),
    Topic(
        "en",
        "ident",
        (
            "Rounding in {svc}: use banker's rounding via {ident}, finance compares totals to the cent.",
            "{ident} does the rounding in {svc}, half to even, since finance checks every cent.",
        ),
        ("{svc} money rounding rule finance", "half even rounding in {svc}"),
        ("How does {svc} round amounts of money?", "Why do we use banker's rounding in {svc}?"),
    ),
    Topic(
        "en",
        "ip",
        (
            "The legacy FTP drop for {svc} sits at {ip}; {person} wants it gone by {date}.",
            "{svc} still polls the FTP server {ip}. {person} plans to shut it down on {date}.",
        ),
        ("{svc} old FTP server shutdown", "legacy file drop that {svc} polls"),
        (
            "When will the FTP server that {svc} polls be shut down?",
            "Who wants to get rid of the FTP drop of {svc}?",
        ),
    ),
    Topic(
        "en",
        "port",
        (
            "Health checks of {svc} go to {port}/healthz with a timeout of {m} ms; the load balancer drops it after 3 failures.",
            "The load balancer probes {svc} at :{port}/healthz ({m} ms timeout) and removes it after three misses.",
        ),
        ("{svc} health probe timeout load balancer", "load balancer health endpoint for {svc}"),
        (
            "What timeout do the health checks of {svc} have?",
            "After how many failures is {svc} taken out of the load balancer?",
        ),
    ),
    Topic(
        "en",
        "table",
        (
            "Time zones: {table} of {svc} stores local time, everything else is UTC. Convert on read.",
            "{svc} has one table with local time, {table}; all others hold UTC, so convert when reading.",
        ),
        ("{svc} local time versus UTC column conversion", "which data of {svc} is not in UTC"),
        ("Which table of {svc} isn't in UTC?", "Do I have to convert time zones when I read from {svc}?"),
    ),
    Topic(
        "en",
        "ticket",
        (
            "Accessibility review of {svc} found {n} contrast problems, tracked in {ticket}; {person} fixes the forms first.",
            "{ticket} collects {n} contrast findings for {svc}. {person} starts with the forms.",
        ),
        ("{svc} accessibility contrast findings", "contrast issues in {svc} forms who fixes"),
        ("How many contrast problems does {svc} have?", "Who fixes the accessibility findings of {svc}?"),
    ),
    Topic(
        "en",
        "env",
        (
            "CI for {svc} caches wheels under the key in {env}; bump it when the lock file format changes.",
            "Bump {env} to drop the wheel cache of {svc} in CI, needed whenever the lock file format changes.",
        ),
        ("invalidate CI wheel cache {svc}", "{svc} pipeline cache key bump"),
        (
            "How do I throw away the wheel cache of {svc} in CI?",
            "When must the cache key of {svc} be bumped?",
        ),
    ),
    Topic(
        "en",
        "err",
        (
            "Customers see {err} from {svc} when their cart holds more than {n} items; the limit is deliberate.",
            "{svc} rejects carts above {n} items with {err}, on purpose.",
        ),
        ("cart item limit in {svc}", "{svc} rejects large carts intended"),
        ("How many items may a cart have in {svc}?", "Is it a bug that {svc} refuses very large carts?"),
    ),
    Topic(
        "en",
        "path",
        (
            "Licence header check of {svc} skips vendored code listed in {path}.",
            "Vendored folders of {svc} are exempt from the licence check if {path} names them.",
        ),
        ("exclude vendored code licence check {svc}", "{svc} licence header exemptions"),
        (
            "How do I exempt vendored code in {svc} from the licence check?",
            "Where is the list of folders that the licence check of {svc} skips?",
        ),
    ),
    Topic(
        "zh",
        "port",
        (
            "{svc}在预发环境监听{port}端口，因为默认端口被监控占用了。",
            "预发环境里{svc}改用{port}端口，原来的端口和监控冲突。",
        ),
        ("{svc} 预发 端口号", "预发环境 {svc} 监听哪个端口"),
        ("{svc}在预发环境用的是哪个端口？", "为什么{svc}在预发不用默认端口？"),
    ),
    Topic(
        "zh",
        "err",
        (
            "{svc}报{err}说明上游证书过期，续期后重启即可。",
            "看到{svc}的{err}错误，先给上游证书续期，再重启服务。",
        ),
        ("{svc} 上游证书过期 续期", "证书过期导致{svc}报错的处理"),
        ("{svc}因为上游证书过期报错了怎么办？", "怎么处理{svc}的证书过期问题？"),
    ),
    Topic(
        "zh",
        "ident",
        (
            "{svc}的{ident}要调到{m}，默认值在压测时会把连接池耗尽。",
            "压测发现{svc}的连接池会耗尽，把{ident}改成{m}后恢复正常。",
        ),
        ("{svc} 压测 连接池耗尽 参数", "连接池不够用 {svc} 调整配置"),
        ("压测时{svc}的连接池耗尽要改哪个参数？", "{svc}的连接池配置为什么要调大？"),
    ),
    Topic(
        "zh",
        "path",
        (
            "{svc}的部署脚本在{path}，改完必须先在测试集群跑一遍。",
            "部署{svc}用{path}这个脚本，上线之前要在测试集群验证。",
        ),
        ("{svc} 部署脚本 位置", "上线{svc}的脚本放在什么地方"),
        ("部署{svc}的脚本在哪里？", "修改{svc}的部署脚本之后要做什么？"),
    ),
    Topic(
        "zh",
        "table",
        (
            "{svc}的历史订单归档到{table}，保留{n}天之后清理。",
            "历史订单归档：{svc}写入{table}，{n}天后由定时任务清理。",
        ),
        ("{svc} 历史订单 归档 保留多久", "订单归档表 {svc}"),
        ("{svc}的历史订单归档保留多少天？", "{svc}把历史订单存到哪张表？"),
    ),
    Topic(
        "zh",
        "env",
        (
            "本地运行{svc}需要设置{env}，否则读不到签名密钥。",
            "{svc}从{env}读取签名密钥，本地调试时记得导出这个变量。",
        ),
        ("{svc} 本地 签名密钥 环境变量", "签名密钥从哪读取 {svc}"),
        ("本地启动{svc}要设置哪个环境变量？", "为什么{svc}在本地读不到签名密钥？"),
    ),
    Topic(
        "zh",
        "commit",
        (
            "{commit}这次提交让{svc}无限重试，{person_zh}已经回滚。",
            "{person_zh}回滚了{commit}，因为{svc}会一直重试。",
        ),
        ("{svc} 无限重试 回滚 提交", "重试问题 {svc} 谁回滚的"),
        ("是谁回滚了导致{svc}无限重试的提交？", "{svc}一直重试是哪次提交引起的？"),
    ),
    Topic(
        "zh",
        "host",
        (
            "{svc}的只读副本是{host}，报表查询不要连主库。",
            "报表查询请连{svc}的只读副本{host}，不要影响主库。",
        ),
        ("{svc} 只读副本 地址 报表", "报表应该连哪个库 {svc}"),
        ("{svc}的只读副本地址是什么？", "查{svc}的报表应该连主库还是副本？"),
    ),
    Topic(
        "zh",
        "ver",
        (
            "{svc}的驱动固定在{ver}版本，新版本断线重连时会泄漏句柄。",
            "不要升级{svc}的数据库驱动，{ver}之后的版本重连时泄漏句柄。",
        ),
        ("{svc} 驱动版本 固定 泄漏", "数据库驱动不能升级的原因 {svc}"),
        ("{svc}的数据库驱动为什么不能升级？", "{svc}的驱动应该用哪个版本？"),
    ),
    Topic(
        "zh",
        "flag",
        (
            "{svc}做表结构迁移时一定要加{flag}，不然大表会锁{n}分钟。",
            "迁移{svc}的大表会锁{n}分钟，加上{flag}就不会锁表。",
        ),
        ("{svc} 迁移 避免锁表 参数", "大表迁移锁表 {svc}"),
        ("{svc}迁移的时候怎样才能不锁表？", "{svc}的表结构迁移要加什么参数？"),
    ),
    Topic(
        "zh",
        "ticket",
        (
            "{ticket}：{svc}给{n}个用户重复扣款，{date}已全部退款。",
            "{svc}重复扣款影响{n}个用户，退款在{date}完成，见{ticket}。",
        ),
        ("{svc} 重复扣款 退款 用户数", "扣款两次的事故 {svc}"),
        ("{svc}重复扣款影响了多少用户？", "{svc}重复扣款的退款是什么时候完成的？"),
    ),
    Topic(
        "zh",
        "ip",
        (
            "银行只放行{svc}从{ip}发出的请求，改出口之前先问{person_zh}。",
            "{svc}的出口地址{ip}在银行白名单里，变更找{person_zh}确认。",
        ),
        ("{svc} 银行 白名单 出口地址", "银行放行的地址 {svc}"),
        ("{svc}访问银行的出口地址是多少？", "修改{svc}的出口地址之前应该问谁？"),
    ),
    Topic(
        "zh",
        "ident",
        (
            "{svc}金额一律用{ident}做四舍六入，财务按分核对。",
            "财务要求按分核对，所以{svc}用{ident}处理金额舍入。",
        ),
        ("{svc} 金额 舍入规则 财务", "财务核对 金额怎么舍入 {svc}"),
        ("{svc}的金额是怎么舍入的？", "为什么{svc}的金额舍入要听财务的？"),
    ),
    Topic(
        "zh",
        "err",
        (
            "{svc}每天凌晨出现{err}属于正常，缓存节点定时重启会断开连接。",
            "凌晨的{err}可以忽略，{svc}的缓存节点那时候定时重启。",
        ),
        ("{svc} 凌晨 缓存重启 报错 可忽略", "缓存节点定时重启 {svc} 正常现象"),
        ("{svc}凌晨的报错需要处理吗？", "为什么{svc}每天凌晨都会断开连接？"),
    ),
    Topic(
        "zh",
        "path",
        (
            "千万别在生产库执行{path}，{svc}的数据会被清空再初始化。",
            "{path}只能在本地用：它会清空{svc}的所有数据再初始化。",
        ),
        ("{svc} 危险脚本 清空数据", "不能在生产执行的初始化脚本 {svc}"),
        ("{svc}的哪个脚本绝对不能在生产执行？", "用脚本初始化{svc}的生产库安全吗？"),
    ),
    Topic(
        "zh",
        "env",
        (
            "{svc}默认走邮件沙箱，只有{env}为live才会真正发信。",
            "为了防止误发，{svc}在{env}不是live时只发到沙箱。",
        ),
        ("{svc} 邮件沙箱 真正发信 开关", "防止误发邮件 {svc}"),
        ("怎么让{svc}真正把邮件发出去？", "{svc}怎样防止从测试环境误发邮件？"),
    ),
    Topic(
        "zh",
        "flag",
        (
            "恢复{svc}的备份要用{flag}推迟外键检查，否则要跑{n}个小时。",
            "{svc}备份恢复很慢，加{flag}推迟外键检查能省{n}个小时。",
        ),
        ("{svc} 备份恢复 外键检查 加速", "恢复备份太慢 {svc}"),
        ("恢复{svc}的备份怎样更快？", "为什么{svc}恢复备份要几个小时？"),
    ),
    Topic(
        "zh",
        "host",
        (
            "{svc}的监控面板搬到了{host}，旧链接{date}失效。",
            "监控面板新地址：{svc}请看{host}，旧链接保留到{date}。",
        ),
        ("{svc} 监控面板 新地址", "面板搬家之后 {svc} 去哪看"),
        ("{svc}的监控面板现在在哪里？", "{svc}的旧面板链接什么时候失效？"),
    ),
    Topic(
        "zh",
        "table",
        (
            "{svc}的{table}存的是本地时间，其余表都是UTC，读取时要转换。",
            "只有{table}用本地时间，{svc}别的表全是UTC，注意换算。",
        ),
        ("{svc} 本地时间 UTC 时区转换", "时区不一致的表 {svc}"),
        ("{svc}哪张表用的不是UTC？", "读取{svc}的时间要不要转换时区？"),
    ),
    Topic(
        "zh",
        "ticket",
        (
            "{date}之前{svc}由{person_zh}值班，升级问题走{ticket}。",
            "{svc}值班人是{person_zh}，到{date}为止，紧急情况提{ticket}。",
        ),
        ("{svc} 值班人 升级流程", "现在谁负责{svc}值班"),
        ("{svc}现在是谁值班？", "{svc}出了紧急情况应该怎么升级？"),
    ),
    Topic(
        "zh",
        "ident",
        (
            "{svc}的新退款页面由开关{ident}控制，等法务确认后再打开。",
            "法务还没确认，{svc}的退款页面先用{ident}关着。",
        ),
        ("{svc} 退款页面 开关 法务", "法务确认之后打开 {svc} 退款"),
        ("为什么用户看不到{svc}的新退款页面？", "法务确认之后要打开{svc}的哪个开关？"),
    ),
    Topic(
        "zh",
        "commit",
        (
            "二分定位到{commit}：{svc}每个请求头都分配缓冲区，内存涨了{n}%。",
            "{svc}的内存涨了{n}%，二分查到是{commit}给每个请求头分配缓冲区。",
        ),
        ("{svc} 内存上涨 二分定位 原因", "请求头缓冲区 内存 {svc}"),
        ("{svc}的内存为什么上涨？", "二分查找{svc}的内存问题得到什么结论？"),
    ),
    Topic(
        "mixed",
        "ident",
        (
            "{svc} 的 Kubernetes HPA 指标改成 {ident}，CPU 指标在 GC 时会误触发扩容。",
            "HPA：{svc} 按 {ident} 扩容，不再看 CPU，因为 GC 期间会误扩。",
        ),
        ("{svc} autoscaling metric 误触发 扩容", "HPA 指标 {svc} GC 误扩容"),
        ("{svc} 的 HPA 为什么不看 CPU 了？", "Which metric scales {svc} now 为什么不是 CPU?"),
    ),
    Topic(
        "mixed",
        "path",
        (
            "TODO: {svc} 的 OpenAPI 文档由 {path} 生成, do not edit swagger.json 手工修改会被覆盖。",
            "swagger.json of {svc} 是自动生成的，要改请改 {path}。",
        ),
        ("{svc} swagger.json 自动生成 来源", "OpenAPI 文档 {svc} generated from"),
        ("{svc} 的 swagger.json 应该在哪里修改？", "Where is swagger.json of {svc} 生成的?"),
    ),
    Topic(
        "mixed",
        "ver",
        (
            "{svc} 升级到 gRPC {ver} 后 keepalive 默认值变了，需要 server 端同时升级。",
            "gRPC {ver}: keepalive 默认值有变化，{svc} 的 client 和 server 必须一起升级。",
        ),
        ("{svc} gRPC keepalive 升级 注意", "gRPC 一起升级 client server {svc}"),
        ("{svc} 升级 gRPC 要注意什么？", "Why must client and server of {svc} 一起升级?"),
    ),
    Topic(
        "mixed",
        "err",
        (
            "{svc} 遇到 {err} 时先看 Redis 的 maxmemory-policy，不要直接重启 pod。",
            "Redis maxmemory-policy 配错会让 {svc} 抛 {err}，restart 没有用。",
        ),
        ("{svc} Redis maxmemory-policy 配错", "restart 没用 {svc} Redis 内存策略"),
        ("{svc} 报错的时候为什么不要直接重启 pod？", "Should I restart {svc} 还是先看 Redis?"),
    ),
    Topic(
        "mixed",
        "host",
        (
            "{svc} 的 Jenkins agent 跑在 {host}，disk 快满了，每{day_zh}清理 workspace。",
            "Jenkins agent {host} 给 {svc} 用，每{day_zh}要清理 workspace，不然 disk full。",
        ),
        ("{svc} Jenkins agent disk 清理", "清理 workspace Jenkins {svc}"),
        ("{svc} 的 Jenkins workspace 什么时候清理？", "Which Jenkins agent does {svc} 用哪台机器?"),
    ),
)


def generate(count: int, seed: int) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """`count` notes and their three queries each, as rows of the two files; at most one note a topic and service."""
    chance = random.Random(seed)
    values = Values(seed + 1)
    pairs = [(topic, service) for topic in range(len(TOPICS)) for service in range(len(SERVICES))]
    chance.shuffle(pairs)
    if count > len(pairs):
        raise SystemExit(f"at most {len(pairs)} notes can be told apart")
    notes: list[tuple[Topic, int, dict[str, str], str, str]] = []
    for which, service in pairs[:count]:
        topic = TOPICS[which]
        slots = {slot: values.draw(slot) for slot in _slots(" ".join(topic.notes))}
        form = chance.choice(topic.notes)
        notes.append((topic, service, slots, form, form.format(svc=_name(topic, service), **slots)))
    everything = [_bare(text) for *_, text in notes]
    corpus: list[dict[str, object]] = []
    queries: list[dict[str, object]] = []
    for number, (topic, service, slots, form, text) in enumerate(notes):
        note_id = f"note-{number:05d}"
        tags = [SERVICES[service].partition("-")[0]] if chance.random() < 0.4 else []
        corpus.append({"id": note_id, "text": text, "tags": tags, "lang": topic.lang})
        name = _name(topic, service)
        said = name if topic.lang == "zh" else service_said(name, chance)
        rare = remembered(topic.rare, slots[topic.rare], chance)
        if sum(_bare(rare) in other for other in everything) > 1:
            rare = slots[topic.rare]
        asked = {
            "rare": rare,
            "paraphrase": _sharing(form, topic.paraphrase, chance).format(svc=said, **slots),
            "question": _sharing(form, topic.question, chance).format(svc=said, **slots),
        }
        for category, query in asked.items():
            queries.append(
                {
                    "id": f"{note_id}/{category}",
                    "text": query,
                    "gold": [note_id],
                    "category": f"{topic.lang}-{category}",
                    "lang": topic.lang,
                }
            )
    return corpus, queries


def _name(topic: Topic, service: int) -> str:
    return SERVICES_ZH[service] if topic.lang == "zh" else SERVICES[service]


def _bare(text: str) -> str:
    """Letters and digits alone, lower case: how alike two spellings are, whatever stands between their parts."""
    return "".join(char for char in text.lower() if char.isalnum())


def _sharing(form: str, queries: tuple[str, ...], chance: random.Random) -> str:
    """One of `queries` that shares at least two words (of Chinese: pairs of characters) with `form`, if one does."""
    words = _words(form)
    shared = {query: len(words & _words(query)) for query in queries}
    enough = [query for query in queries if shared[query] >= 2]
    return chance.choice(enough) if enough else max(queries, key=lambda query: shared[query])


def _words(form: str) -> set[str]:
    words: set[str] = set()
    for word in form.lower().replace("{svc}", " ").split():
        plain = "".join(char for char in word if char.isalnum())
        if plain.isascii() and len(plain) > 3:
            words.add(plain[:5])
        words.update(plain[i : i + 2] for i in range(len(plain) - 1) if not plain[i : i + 2].isascii())
    return words


def _slots(form: str) -> list[str]:
    names = (part.partition("}")[0] for part in form.split("{")[1:])
    return [name for name in dict.fromkeys(names) if name != "svc"]


def main() -> None:
    """Write the two files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--notes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    corpus, queries = generate(options.notes, options.seed)
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (options.folder / name).write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
