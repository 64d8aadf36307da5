// What is drawn on maps and views. Metres, +y up.

const line = (points, kind) => svg("polyline", { points: points.map(([x, y]) => `${x},${-y}`).join(" "), class: kind });

function star(x, y, r) {
  const corner = (i) => [x + r * (i % 2 ? 0.45 : 1) * Math.sin((i * Math.PI) / 5), y - r * (i % 2 ? 0.45 : 1) * Math.cos((i * Math.PI) / 5)];
  return `M${Array.from({ length: 10 }, (_, i) => corner(i).join(",")).join("L")}Z`;
}

function cross([x, y], r, step) {
  return svg("path", { d: `M${x - r},${-y - r} l${2 * r},${2 * r} m0,${-2 * r} l${-2 * r},${2 * r}`, class: "bump" }, svg("title", null, `bump at step ${step}`));
}
