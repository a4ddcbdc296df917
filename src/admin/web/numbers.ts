// Formats numbers for people.

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** Formats as `12,345`. */
export function countText(count: number): string {
  return WHOLE.format(count);
}

/** Formats with three significant digits, but with all digits before the point: `0.25`, `17.4`, `12,345`. */
export function figureText(value: number): string {
  return Math.abs(value) >= 100 ? WHOLE.format(value) : SHORT.format(value);
}

/** Formats as `17.4/s`; a dash if unknown. */
export function rateText(rate: number | undefined): string {
  return rate === undefined ? '–' : `${figureText(rate)}/s`;
}

/** Formats as `99.3 %`, rounded down; a dash if unknown. */
export function percentText(share: number | undefined): string {
  return share === undefined ? '–' : `${figureText(Math.floor(share * 1000) / 10)} %`;
}

/** Formats as `65.4 MiB`. */
export function bytesText(bytes: number): string {
  let unit = 0;
  for (; bytes >= 1024 && unit < UNITS.length - 1; unit++) bytes /= 1024;
  return `${figureText(bytes)} ${UNITS[unit]}`;
}

/** Formats as `2d 3h`, `3h 25m`, `25m 7s` or `7s`, as the server does when it renders the page. */
export function uptimeText(seconds: number): string {
  const parts = [
    Math.floor(seconds / 86400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  const first = parts.findIndex((part) => part > 0);
  if (first < 0) return '0s';
  return parts
    .map((part, index) => `${part}${'dhms'[index]}`)
    .slice(first, first + 2)
    .join(' ');
}
