// How what somebody has named becomes part of the names of stats.

/** Colons become '_': sinks and monitoring systems separate with them. So does what no line of text can hold. */
export function scopePrefix(text: string): string {
  return text.replace(/:\/{0,2}|[\0\r\n]/g, '_');
}
