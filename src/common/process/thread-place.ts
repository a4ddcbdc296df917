// Where a thread of this process is that does not answer: its top frame, by the inspector, without opening a port.

import { Session } from 'node:inspector';

/** A frame of a paused thread. */
interface Frame {
  readonly functionName: string;
  readonly location: { readonly scriptId: string; readonly lineNumber: number; readonly columnNumber: number };
}

/** An event of a thread's debugger. */
type DebuggerEvent =
  | { readonly method: 'Debugger.scriptParsed'; readonly params: { readonly scriptId: string; readonly url: string } }
  | { readonly method: 'Debugger.paused'; readonly params: { readonly callFrames: readonly Frame[] } };

export interface ThreadFrame {
  /** '': it has none. */
  readonly name: string;
  readonly url: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
}

const MAX_WAIT_MS = 2000;

/** Resolves with the frames of a worker thread, the innermost first; empty if it cannot be paused in time. */
export async function framesOf(threadId: number): Promise<readonly ThreadFrame[]> {
  const session = new Session();
  session.connect();
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<readonly ThreadFrame[]>((resolve) => {
      timer = setTimeout(() => resolve([]), MAX_WAIT_MS);
      pause(session, threadId, resolve);
    });
  } finally {
    clearTimeout(timer);
    session.disconnect();
  }
}

/** Messages to a thread go through the session of the main thread. */
function pause(session: Session, threadId: number, paused: (frames: readonly ThreadFrame[]) => void): void {
  let id = 0;
  let target: string | undefined;
  const urls = new Map<string, string>();
  const send = (method: string) => {
    const message = JSON.stringify({ id: ++id, method });
    session.post('NodeWorker.sendMessageToWorker', { sessionId: target!, message });
  };
  session.on('NodeWorker.attachedToWorker', ({ params }) => {
    // workerId is the inspector's own number.
    if (!params.workerInfo.title.startsWith(`[worker ${threadId}]`)) return;
    target = params.sessionId;
    send('Debugger.enable');
    send('Debugger.pause');
  });
  session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
    if (params.sessionId !== target) return;
    const event = JSON.parse(params.message) as DebuggerEvent;
    // Frames name scripts by number; all scripts are reported before.
    if (event.method === 'Debugger.scriptParsed') urls.set(event.params.scriptId, event.params.url);
    if (event.method !== 'Debugger.paused') return;
    // A thread with a debugger that has paused it cannot be terminated.
    send('Debugger.disable');
    session.post('NodeWorker.disable');
    paused(event.params.callFrames.map((frame) => frameOf(frame, urls)));
  });
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
}

function frameOf({ functionName, location }: Frame, urls: ReadonlyMap<string, string>): ThreadFrame {
  return {
    name: functionName,
    url: urls.get(location.scriptId) ?? '',
    line: location.lineNumber + 1,
    column: location.columnNumber + 1,
  };
}
