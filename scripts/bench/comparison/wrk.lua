-- Prints one line of JSON at the end of a run. Arguments after "--": the number of body bytes to POST (0: GET).

function init(args)
  local bytes = tonumber(args[1] or "0")
  if bytes > 0 then
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/octet-stream"
    wrk.body = string.rep("x", bytes)
  end
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"bytes":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"maxUs":%d,"failed":%d}\n',
    summary.requests, summary.bytes, summary.duration,
    latency:percentile(50), latency:percentile(99), latency.max,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
