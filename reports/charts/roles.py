"""Live bytes at the peak, by role."""

from __future__ import annotations

from reports.charts.area import Area
from reports.charts.palette import ROLES, role_name, role_token
from reports.charts.style import Chart, Datum, Drawing, Table, bytes_datum
from reports.charts.svg import to_svg
from reports.data import units


def roles_chart(chart_id: str, by_role: dict[str, int]) -> Chart | None:
    """Requested bytes at the peak, by role, as recorded in the sample."""
    roles = [role for role in (*ROLES, *sorted(set(by_role) - set(ROLES))) if by_role.get(role)]
    if not roles:
        return None
    title = "What is live at the peak"
    total = sum(by_role[role] for role in roles)
    drawing = Drawing(34 * len(roles) + 8)
    area = Area(drawing, 6, 4, 6, 4, floor=False)
    area.set_xlim(0, max(by_role[role] for role in roles))
    area.set_ylim(len(roles) - 0.5, -0.5)
    for row, role in enumerate(roles):
        area.bars([(0, row + 0.07, by_role[role], row + 0.37)], role_token(role))
        area.text(0, row - 0.17, role_name(role), "ink", transform=area.by_y, va="center")
        share = f"{units.bytes_(by_role[role])} · {units.percent(by_role[role] / total)}"
        area.text(1, row - 0.17, share, "muted", transform=area.by_y, ha="right", va="center")
    rows = [
        (Datum(role_name(role)), bytes_datum(by_role[role]), Datum(units.percent(by_role[role] / total)))
        for role in roles
    ]
    largest = max(roles, key=lambda role: by_role[role])
    description = f"{role_name(largest)} holds most: {units.bytes_(by_role[largest])} of {units.bytes_(total)}."
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, description),
        Table(("role", "requested", "share"), rows),
        note=f"{units.bytes_(total)} requested in all.",
    )
