// Number formats of /stats.

/** Formats as printf's %g with this many significant digits: 1.8e+06, 112.5, nan. */
export function formatGeneral(value: number, digits: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  if (size === 0) return '0';
  if (size >= 1e-4 && size < 10 ** digits) return String(rounded);
  return exponential(rounded);
}

/** Formats as the shortest text that reads back as the same number, as C++'s std::format: 112.5, 1800000, 1e+16, nan. */
export function formatShortest(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-4 && size < 1e16)) return String(value);
  return Number.isFinite(value) ? exponential(value) : formatGeneral(value, 6);
}

function exponential(value: number): string {
  const [mantissa, power] = value.toExponential().split('e') as [string, string];
  return `${mantissa}e${power[0]}${power.slice(1).padStart(2, '0')}`;
}
