// What whoever listens on NOTIFY_SOCKET is told (sd_notify(3)), in order: that a server is live must not get lost where the
// receiver has no room.

/** How soon it is tried again. */
const RETRY_MS = 100;

export class NotifyQueue {
  readonly #send: (message: string) => boolean;
  readonly #failed: (message: string, error: unknown) => void;
  #waiting: string[] = [];
  #retry: NodeJS.Timeout | undefined;

  /** `send` sends one message; false when there is no room now. `failed` gets what it throws: that message is given up. */
  constructor(send: (message: string) => boolean, failed: (message: string, error: unknown) => void) {
    this.#send = send;
    this.#failed = failed;
  }

  /** A newer message takes the place of what waits and says the same, or another status: who never reads costs no more. */
  say(message: string): void {
    const kind = kindOf(message);
    this.#waiting = this.#waiting.filter((each) => kindOf(each) !== kind);
    this.#waiting.push(message);
    if (this.#retry === undefined) this.#sendWaiting();
  }

  /** Whoever does not read needs no further one. */
  signOfLife(): void {
    if (this.#waiting.length === 0) this.say('WATCHDOG=1');
  }

  close(): void {
    clearTimeout(this.#retry);
  }

  #sendWaiting(): void {
    this.#retry = undefined;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      try {
        if (!this.#send(first)) {
          this.#retry = setTimeout(() => this.#sendWaiting(), RETRY_MS).unref();
          return;
        }
      } catch (error) {
        this.#failed(first.replaceAll('\n', ' '), error);
      }
      this.#waiting.shift();
    }
  }
}

/** READY=1 and the like stand first, and tell of a change each; of texts only the last one matters. */
function kindOf(message: string): string {
  const [first] = message.split('\n', 1);
  return first!.startsWith('STATUS=') ? 'STATUS' : first!;
}
