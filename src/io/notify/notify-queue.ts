// Sends notifications to NOTIFY_SOCKET (sd_notify(3)) in order. They are queued while the receiver's buffer is full, so that READY=1 is not
// lost.

/** Delay before a retry. */
const RETRY_MS = 100;

export class NotifyQueue {
  readonly #send: (message: string) => boolean;
  readonly #failed: (message: string, error: unknown) => void;
  #waiting: string[] = [];
  #retry: NodeJS.Timeout | undefined;

  /**
   * `send` sends one message and returns false if the receiver's buffer is full. If it throws, the message is dropped and `failed` is
   * called.
   */
  constructor(send: (message: string) => boolean, failed: (message: string, error: unknown) => void) {
    this.#send = send;
    this.#failed = failed;
  }

  /**
   * Sends or queues a message. It replaces a queued message of the same kind, so that a receiver that never reads does not make the queue
   * grow.
   */
  notify(message: string): void {
    const kind = kindOf(message);
    this.#waiting = this.#waiting.filter((each) => kindOf(each) !== kind);
    this.#waiting.push(message);
    if (this.#retry === undefined) this.#sendWaiting();
  }

  /** Sends WATCHDOG=1 unless messages are queued: a receiver that does not read needs no further ones. */
  pingWatchdog(): void {
    if (this.#waiting.length === 0) this.notify('WATCHDOG=1');
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

/**
 * Returns the first line, such as READY=1, which names a state change. All STATUS messages are one kind, because only the last one matters.
 */
function kindOf(message: string): string {
  const [first] = message.split('\n', 1);
  return first!.startsWith('STATUS=') ? 'STATUS' : first!;
}
