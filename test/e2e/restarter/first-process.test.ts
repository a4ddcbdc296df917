// baton-restarter as process 1 of a container: signals arrive, and orphans are reaped.

import { spawnSync } from 'node:child_process';
import t from 'tap';
import { waitFor } from '../harness/index.js';
import { childrenOf, startWrapper } from './wrapper.js';

/** A separate PID namespace, as in a container. */
const CONTAINER = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];
const refusal = spawnSync(CONTAINER[0]!, [...CONTAINER.slice(1), 'true'], { encoding: 'utf8' });
const skip = refusal.status === 0 ? false : `no PID namespace can be made here: ${refusal.stderr ?? refusal.error}`;

t.test('as process 1 it reaps orphans, forwards signals and exits cleanly', { skip }, async (t) => {
  const wrapper = await startWrapper(t, { wrapper: CONTAINER });
  const child = await wrapper.child(0);
  const first = childrenOf(wrapper.process.pid!)[0]!.pid;
  t.match(wrapper.stdout, /\]\[1\]\[info\]\[restarter\]/, 'it is process 1');
  await child.ready();
  await wrapper.logs('epoch 0 is live');
  await reapsOrphan(first, () => child.command('leave-orphan 1000'));

  process.kill(first, 'SIGUSR1');
  await child.receives('SIGUSR1');
  process.kill(first, 'SIGHUP');
  await (await wrapper.child(1)).ready();
  await wrapper.logs('epoch 1 is live');
  // Reaping does not lose the status of its own children.
  await child.exit(0);
  await wrapper.logs(/epoch 0 \(pid \d+\) exited: status 0/);
  t.same(
    childrenOf(first).map(({ isZombie }) => isZombie),
    [false],
  );
  process.kill(first, 'SIGTERM');
  t.equal(await wrapper.status(), 0);
});

t.test('jobs of a shell that executed it are reaped too, including those that exited earlier', async (t) => {
  // Both are the wrapper's children from its first moment; the second keeps running.
  const shell = ['sh', '-c', 'sleep 0 & sleep 1000 & exec "$@"', 'sh'];
  const wrapper = await startWrapper(t, { wrapper: shell });
  const child = await wrapper.child(0);
  await child.ready();
  await reapsOrphan(wrapper.process.pid!, () => undefined);
  t.equal(await wrapper.end(), 0);
});

/** Without /proc, as in some chroots. */
const CHROOT = ['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh'];
const noMount =
  spawnSync(CHROOT[0]!, [...CHROOT.slice(1), 'true']).status === 0 ? false : 'nothing can be mounted here';

t.test('without a list of its children it works, and reports that', { skip: noMount }, async (t) => {
  const wrapper = await startWrapper(t, { wrapper: CHROOT });
  await wrapper.logs('[warning][restarter] the status of ended orphans is not taken: ENOENT');
  const child = await wrapper.child(0);
  await child.ready();
  await wrapper.logs('epoch 0 is live');
  t.equal(await wrapper.end(), 0);
});

/** Has `make` create an orphaned `sleep`, kills it, and waits until the process has reaped it. */
async function reapsOrphan(pid: number, make: () => unknown): Promise<void> {
  await make();
  const isSleep = ({ name, isZombie }: ReturnType<typeof childrenOf>[number]) => name === 'sleep' && !isZombie;
  const orphan = await waitFor(() => childrenOf(pid).find(isSleep), { what: 'an orphan' });
  process.kill(orphan.pid, 'SIGKILL');
  await waitFor(() => !childrenOf(pid).some((each) => each.pid === orphan.pid || each.isZombie), {
    what: `the reaping of the orphan, in ${JSON.stringify(childrenOf(pid))}`,
  });
}
