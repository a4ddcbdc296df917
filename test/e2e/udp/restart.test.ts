// UDP listeners across a hot restart: datagrams are served at every moment, by one process or the other.

import t from 'tap';
import { bootstrap, EpochLine, staticCluster, waitForLog } from '../harness/index.js';
import { startUdpEcho, UdpClient, udpListener, udpProxy } from './peers.js';

t.test('no datagram is lost when a process takes over from another, also with other numbers of workers', async (t) => {
  const host = await startUdpEcho(t, 'a');
  const line = new EpochLine(t);
  const config = bootstrap({
    listeners: [udpListener('u', [udpProxy('up')])],
    clusters: [staticCluster('up', host.port)],
  });
  const args = ['-l', 'info', '--drain-time-s', '1', '--parent-shutdown-time-s', '2'];
  let process = await line.start(0, { config, args: [...args, '--concurrency', '2'] });
  const port = await process.listenerPort('u');
  const clients = await Promise.all([1, 2, 3, 4].map(() => UdpClient.connect(t, port)));
  let asked = 0;
  const ask = async () => {
    for (const client of clients) t.equal(await client.ask(`${++asked}`), `a:${asked}`);
    const newcomer = await UdpClient.connect(t, port);
    t.equal(await newcomer.ask('new'), 'a:new');
  };
  await ask();
  for (const [epoch, workers] of [
    [1, 3],
    [2, 1],
  ] as const) {
    const child = await line.start(epoch, {
      config,
      args: [...args, '--concurrency', String(workers)],
      wait: 'spawned',
    });
    let isOver = false;
    const over = process.exited.then(() => {
      isOver = true;
    });
    while (!isOver) await ask();
    await over;
    await waitForLog(process, 'closing and draining listeners');
    await ask();
    t.equal(await child.listenerPort('u'), port);
    process = child;
  }
  await process.waitForStats({ 'udp.foo.downstream_sess_no_route': 0, 'cluster.up.udp.sess_tx_errors': 0 });
  await process.stop();
});

t.test(
  'workers never share a socket of the parent process: the new process ends, and the old one serves on',
  async (t) => {
    const host = await startUdpEcho(t, 'a');
    const line = new EpochLine(t);
    const at = (port_value: number) => ({
      address: { socket_address: { protocol: 'UDP', address: '127.0.0.1', port_value } },
    });
    const configOf = (port: number, shares: boolean) =>
      bootstrap({
        listeners: [udpListener('u', [udpProxy('up')], { ...at(port), enable_reuse_port: shares })],
        clusters: [staticCluster('up', host.port)],
      });
    const parent = await line.start(0, { config: configOf(0, false), args: ['--concurrency', '1'] });
    const port = await parent.listenerPort('u');
    const client = await UdpClient.connect(t, port);
    t.equal(await client.ask('1'), 'a:1');
    const child = await line.start(1, { config: configOf(port, true), args: ['--concurrency', '2'], wait: 'spawned' });
    t.equal((await child.exited).code, 1);
    t.match(child.stderr, /unstable packet proxying/);
    t.equal(await client.ask('2'), 'a:2');
    t.equal(await (await UdpClient.connect(t, port)).ask('3'), 'a:3');
    await parent.stop();
  },
);
