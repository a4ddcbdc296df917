// Doubles as C++ prints them.

/** Returns a number in the form %.Ng of C's printf(). */
export function shortNumber(value: number, digits: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const [mantissa = '', power = '0'] = value.toExponential(digits - 1).split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < digits) return withoutZeros(value.toFixed(digits - 1 - exponent));
  const size = String(Math.abs(exponent)).padStart(2, '0');
  return `${withoutZeros(mantissa)}e${exponent < 0 ? '-' : '+'}${size}`;
}

/** Returns a number with as many digits as it needs. */
export function exactNumber(value: number): string {
  const short = shortNumber(value, 15);
  return Number(short) === value || !Number.isFinite(value) ? short : shortNumber(value, 17);
}

function withoutZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}
