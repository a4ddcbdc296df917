// A render thread that sends a piece, when it is asked for stats, and ends without a word.

import type { RenderTask } from '../../../src/admin/render/render-thread.js';

export default async function render({ request, port }: RenderTask<'stats'>): Promise<void> {
  if (request.rendering.form === 'json') port.postMessage(Buffer.from('{"stats":['));
  // The piece is on its way before the thread ends.
  await new Promise((resolve) => setTimeout(resolve, 20));
  process.exit(3);
}
