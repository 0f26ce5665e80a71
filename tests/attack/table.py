"""The table: one line per attack, and which goals it missed."""

import watch

RSS_GOAL_MB = 20
GOALS_MS = {"simple": 10, "health": 20}
HEADS = (
    "attack", "server", "RSS MB before/peak/after", "group MB", "descriptors", "threads", "simple ms p50/p99/max",
    "health ms p50/p99/max", "failed", "outcome", "s", "note",
)


def kept(before, after):
    """What the server did not give back, as text."""
    found = []
    if after.rss_mb - before.rss_mb > RSS_GOAL_MB:
        found.append(f"RSS +{after.rss_mb - before.rss_mb:.0f} MB")
    # The other client opens and closes connections all the time: it may be looked at in between.
    if after.descriptors - before.descriptors > 2:
        found.append(f"descriptors +{after.descriptors - before.descriptors}")
    if after.threads > before.threads:
        found.append(f"threads +{after.threads - before.threads}")
    return found


def missed(row):
    """Goals that the row does not meet."""
    found = kept(watch.Use(**row["before"]), watch.Use(**row["after"]))
    if row["goals"]:
        for what, goal in GOALS_MS.items():
            p99 = row["during"][what].get("p99")
            if p99 is None or p99 > goal:
                found.append(f"{what} p99 {'-' if p99 is None else f'{p99:.0f} ms'}")
        failed = sum(row["during"][what]["failed"] for what in GOALS_MS)
        if failed:
            found.append(f"{failed} of the other client's requests failed")
    return found


def verdict(row):
    if "did not start" in row:
        return "did not start: " + row["did not start"]
    if not row["alive"]:
        return f"DIED (exit {row['exit']})"
    if row["achieved"]:
        return f"ACHIEVED: {row['achieved']}"
    if not row["serves"]:
        return "ALIVE BUT DOES NOT SERVE"
    if row["exit"] != 0 and row["server"] != "Triton 2.51":
        return f"exit status {row['exit']} when stopped"
    return "held" if not missed(row) else "missed: " + ", ".join(missed(row))


def three(row, key, form):
    values = [row[when][key] if row[when] else None for when in ("before", "peak", "after")]
    return "/".join("-" if value is None else format(value, form) for value in values)


def latency(found):
    return "/".join(f"{found[key]:.1f}" if key in found else "-" for key in ("p50", "p99", "max"))


def failed(during):
    return " ".join(f"{what} {found['failed']}/{found['count']}" for what, found in during.items() if found["failed"])


def cells(row):
    if "did not start" in row:
        return (row["attack"], row["server"], *[""] * 7, verdict(row), "", "")
    note = row["note"] + (f"; CPU {row['cpu']:.1f} s" if row["cpu"] is not None else "")
    return (
        row["attack"], row["server"], three(row, "rss_mb", ".0f"),
        "-" if row["group peak"] is None else f"{row['group peak']:.0f}", three(row, "descriptors", "d"),
        three(row, "threads", "d"), latency(row["during"]["simple"]), latency(row["during"]["health"]),
        failed(row["during"]), verdict(row), f"{row['attack seconds']:.0f}", note,
    )


def line(found):
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in found) + " |"


def show(rows):
    print(line(HEADS))
    print("|" + "---|" * len(HEADS))
    for row in rows:
        print(line(cells(row)))
