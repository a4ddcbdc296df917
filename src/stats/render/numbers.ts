// Number formats of /stats.

/** Formats as printf's %g with this many significant digits: 1.8e+06, 112.5, nan. */
export function formatGeneral(value: number, digits: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  if (size === 0) return '0';
  if (size >= 1e-4 && size < 10 ** digits) return String(rounded);
  const [mantissa, power] = rounded.toExponential().split('e') as [string, string];
  return `${mantissa}e${power[0]}${power.slice(1).padStart(2, '0')}`;
}
