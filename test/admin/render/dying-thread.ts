// A render thread that sends one piece of stats and exits without a message.

import type { RenderTask } from '../../../src/admin/render/render-thread.js';

export default async function render({ request, port }: RenderTask<'stats'>): Promise<void> {
  if (request.rendering.form === 'json') port.postMessage(Buffer.from('{"stats":['));
  // The piece is sent before the thread exits.
  await new Promise((resolve) => setTimeout(resolve, 20));
  process.exit(3);
}
