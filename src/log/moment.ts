// Calendar fields of a point in time, cached for the current second, and texts made from them.

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'] as const;
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const;

export type Zone = 'utc' | 'local';

/** Calendar fields of the current second, which at() sets. Each formatter keeps one object. */
export class Moment {
  /** Seconds since the epoch. */
  epochSecond = Number.NaN;
  year = 1970;
  /** 1 to 12. */
  month = 1;
  day = 1;
  /** 0 is Sunday. */
  weekday = 4;
  hour = 0;
  minute = 0;
  second = 0;
  /** Minutes east of UTC. */
  offsetMinutes = 0;

  readonly #zone: Zone;

  constructor(zone: Zone) {
    this.#zone = zone;
  }

  /** Sets the time; returns true if the second has changed. */
  at(epochMs: number): boolean {
    const second = Math.floor(epochMs / 1000);
    if (second === this.epochSecond) return false;
    this.epochSecond = second;
    // The fields of a local time equal those of the UTC time shifted by the zone's offset.
    this.offsetMinutes = this.#zone === 'utc' ? 0 : -new Date(second * 1000).getTimezoneOffset();
    const date = new Date((second + this.offsetMinutes * 60) * 1000);
    this.year = date.getUTCFullYear();
    this.month = date.getUTCMonth() + 1;
    this.day = date.getUTCDate();
    this.weekday = date.getUTCDay();
    this.hour = date.getUTCHours();
    this.minute = date.getUTCMinutes();
    this.second = date.getUTCSeconds();
    return true;
  }

  get weekdayName(): string {
    return WEEKDAYS[this.weekday]!;
  }
  get monthName(): string {
    return MONTHS[this.month - 1]!;
  }
  /** Hour of the 12-hour clock, 1 to 12. */
  get hour12(): number {
    return this.hour % 12 || 12;
  }
  get half(): string {
    return this.hour < 12 ? 'AM' : 'PM';
  }
  /** Day of the year, from 1. */
  get yearDay(): number {
    return Math.floor((Date.UTC(this.year, this.month - 1, this.day) - Date.UTC(this.year, 0, 1)) / 86_400_000) + 1;
  }
  /** `15:25:06` */
  get clock(): string {
    return `${pad2(this.hour)}:${pad2(this.minute)}:${pad2(this.second)}`;
  }
  /** `03:25:06 PM` */
  get clock12(): string {
    return `${pad2(this.hour12)}:${pad2(this.minute)}:${pad2(this.second)} ${this.half}`;
  }
  /** `03/27/18` */
  get shortDate(): string {
    return `${pad2(this.month)}/${pad2(this.day)}/${pad2(this.year % 100)}`;
  }
  /** Returns `+01:00`, with that separator. */
  offset(separator: string): string {
    const minutes = Math.abs(this.offsetMinutes);
    const sign = this.offsetMinutes < 0 ? '-' : '+';
    return `${sign}${pad2(Math.floor(minutes / 60))}${separator}${pad2(minutes % 60)}`;
  }
}

export function pad2(value: number): string {
  return value < 10 ? `0${value}` : `${value}`;
}
