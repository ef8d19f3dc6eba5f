"""What can be read of the machine: processor, graphics, power, temperature, load.

Everything is read from where the system keeps it; what isn't readable is left out.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

_CPU = Path("/proc/cpuinfo")
_SYS = Path("/sys")


def facts() -> dict[str, str]:
    """What stays as it is while an experiment runs: name to value."""
    found = {
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu(),
        "cpu_cores": str(os.cpu_count() or ""),
        "memory_gib": _memory(),
        "gpu": "; ".join(_nvidia("name")),
        "power_mode": _power(),
    }
    return {name: value for name, value in found.items() if value}


def readings() -> dict[str, str]:
    """What changes: load of the last minute, temperatures in °C, the graphics clock in MHz."""
    found = {
        "load": _load(),
        "cpu_temperature_c": _temperature(),
        "gpu_temperature_c": "; ".join(_nvidia("temperature.gpu")),
        "gpu_clock_mhz": "; ".join(_nvidia("clocks.sm")),
    }
    return {name: value for name, value in found.items() if value}


def _cpu() -> str:
    for line in _lines(_CPU):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return _said("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f}"
    except (ValueError, OSError):
        return ""


def _power() -> str:
    """Governor, profile and mains of Linux, the low-power switch of macOS."""
    kinds = {
        "governor": _text(_SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "profile": _text(_SYS / "firmware/acpi/platform_profile"),
        "mains": next(
            (_text(path) for path in sorted((_SYS / "class/power_supply").glob("A*/online"))), ""
        ),
    }
    for line in _said("pmset", "-g").splitlines():
        name, _, value = line.strip().partition(" ")
        if name in ("lowpowermode", "powermode"):
            kinds[name] = value.strip()
    return ", ".join(f"{name} {value}" for name, value in kinds.items() if value)


def _load() -> str:
    try:
        return f"{os.getloadavg()[0]:.2f}"
    except OSError:
        return ""


def _temperature() -> str:
    """The hottest zone that the system reports."""
    zones = [_text(path) for path in (_SYS / "class/thermal").glob("thermal_zone*/temp")]
    degrees = [int(zone) / 1000 for zone in zones if zone.lstrip("-").isdigit()]
    return f"{max(degrees):.1f}" if degrees else ""


def _nvidia(field: str) -> list[str]:
    said = _said("nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits")
    return [line.strip() for line in said.splitlines() if line.strip()]


def _said(*command: str) -> str:
    """What a program says; nothing where it isn't there, fails, or takes too long."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=10, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _text(path: Path) -> str:
    return next(_lines(path), "").strip()


def _lines(path: Path) -> Iterator[str]:
    try:
        yield from path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
