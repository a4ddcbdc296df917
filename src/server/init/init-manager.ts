// Waits for the targets that must be ready before a server takes traffic, or before a listener is used. /init_dump shows the
// names of targets that are not ready.

/** An init target. */
export interface InitTarget {
  readonly name: string;
  /** It needs only files of this machine, and is ready in a moment. */
  readonly isLocal: boolean;
  /** Called when the target is ready or will never be. Further calls are no-ops. */
  ready(): void;
}

export class InitManager {
  /** As /init_dump shows it: `Server`, `Listener-local-init-manager listener_0`. */
  readonly name: string;
  readonly #targets = new Set<InitTarget>();
  #onReady: (() => void) | undefined;
  #onRemote: (() => void) | undefined;

  constructor(name: string) {
    this.name = name;
  }

  /** May be called before wait(), or while another target is not ready. */
  add(name: string, isLocal = false): InitTarget {
    const target: InitTarget = {
      name,
      isLocal,
      ready: () => {
        if (this.#targets.delete(target)) this.#check();
      },
    };
    this.#targets.add(target);
    this.#checkRemote();
    return target;
  }

  /** Calls `onReady` once, when all targets are ready; immediately if they already are. */
  wait(onReady: () => void): void {
    this.#onReady = onReady;
    this.#check();
  }

  /** Resolves when all targets are ready, or when `ended` is aborted. */
  whenReady(ended: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        ended.removeEventListener('abort', end);
        resolve();
      };
      if (ended.aborted) return resolve();
      ended.addEventListener('abort', end);
      this.wait(end);
    });
  }

  /** Resolves when a target is not ready that needs more than files of this machine. */
  whenRemote(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRemote = resolve;
      this.#checkRemote();
    });
  }

  /** No target that is not ready needs more than files of this machine. */
  get isLocal(): boolean {
    return [...this.#targets].every(({ isLocal }) => isLocal);
  }

  get unreadyTargets(): string[] {
    return Array.from(this.#targets, ({ name }) => name);
  }

  #checkRemote(): void {
    if (this.#onRemote === undefined || this.isLocal) return;
    this.#onRemote();
    this.#onRemote = undefined;
  }

  #check(): void {
    if (this.#targets.size > 0) return;
    const onReady = this.#onReady;
    this.#onReady = undefined;
    onReady?.();
  }
}
