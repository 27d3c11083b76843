"""Table output of bench/e2e.py."""

SIZES = [(1e6, "MB"), (1e3, "kB"), (1, "B ")]


def in_unit(value, units):
    """Format details three digits in the largest unit that yields at least 1."""
    if value is None:
        return "-"
    for scale, unit in units:
        if value >= scale or (scale, unit) == units[-1]:
            scaled = value / scale
            digits = 0 if scale == 1 and isinstance(value, int) else 2 if scaled < 10 else 1 if scaled < 100 else 0
            return f"{scaled:.{digits}f} {unit}"
    return "-"


def seconds(value):
    return in_unit(value, [(1, "s "), (1e-3, "ms")])


def ratio(value):
    if not value:
        return f"{'-':>7}"
    return f"{value:7.3f}" if value < 0.1 else f"{value:7.2f}"


def print_case(label, picture, lines):
    ours = lines[0]
    details = f"{picture}, {in_unit(ours['bytes_in'], SIZES).strip()}, " if picture else ""
    print(f"\n{label}: {details}{ours['pairs']} pairs")
    print(f"  {'program':<12}{'wall':>10}{'MP/s':>8}{'CPU':>10}{'peak RSS':>11}{'file':>10}"
          f"   ours/it:{'wall':>6}{'CPU':>7}{'RSS':>7}{'file':>7}")
    for line in lines:
        ratios = [line.get("ratio_" + key) for key in ("wall_s", "cpu_s", "rss_kib", "bytes")]
        text = "" if line is ours else "".join(map(ratio, ratios))
        size = in_unit(line["bytes"], SIZES)
        memory = in_unit(line["rss_kib"], [(1 << 20, "GiB"), (1 << 10, "MiB"), (1, "KiB")])
        remark = f"   {line['remark']}" if line["remark"] else ""
        rate = line["mp_per_s"]
        speed = f"{rate:.{1 if rate < 100 else 0}f}" if rate else "-"
        print(f"  {line['program']:<12}{seconds(line['wall_s']):>10}{speed:>8}{seconds(line['cpu_s']):>10}"
              f"{memory:>11}{size:>10}           {text}".rstrip() + remark, flush=True)
