# Completion of baton's options in fish. Written by scripts/document-options.ts from the option table: do not edit.

# <component>:<level>,<component>:<level>
function __baton_component_levels
    set -l value (string replace -r -- '^--component-log-level=' '' (commandline -ct))
    set -l head (string match -r -- '^.*,' $value); or set head ''
    set -l item (string replace -r -- '^.*,' '' $value)
    if string match -q '*:*' -- $item
        set -l component (string replace -r ':.*$' '' -- $item)
        for level in trace debug info warning error critical off
            echo $head$component:$level
        end
    else
        for component in a2a admin ai_protocol_manager alternate_protocols_cache aws assert backtrace basic_auth cache_filter client config connection conn_handler compression credential_injector decompression dns dubbo envoy_bug ext_authz ext_proc rocketmq file filter forward_proxy geolocation grpc happy_eyeballs hc health_checker http http2 hystrix init io jwt json_rpc kafka key_value_store lua local_rate_limit main matcher mcp misc mongo multi_connection notification oauth2 quic quic_stream pool rate_limit_quota rbac rds redis router runtime stats secret sse tap testing thrift tracing upstream udp wasm websocket golang stats_sinks dynamic_modules ip_tagging
            echo $head$component:
        end
    end
end

complete -c baton -s c -l config-path -r -F -d 'Bootstrap file'
complete -c baton -l config-yaml -x -d 'Bootstrap as YAML or JSON text'
complete -c baton -l expand-env -n '__fish_not_contain_opt expand-env' -d 'Replaces ${NAME} and ${NAME:-default} in values by variables of the environment'
complete -c baton -l watch-config -n '__fish_not_contain_opt watch-config' -d 'Applies the bootstrap file whenever it changes, without a restart'
complete -c baton -l mode -x -a 'serve validate' -d 'serve checks the configuration and serves it; validate only checks it and exits with 0 or 1'
complete -c baton -l format -x -a 'text json' -d 'Form of the answer of --mode validate on standard output: text or json'
complete -c baton -l route-tests -r -F -d 'With --mode validate: a file of requests, and where the routes must send them'
complete -c baton -l admin-address-path -r -F -d 'File to which the address and port of the admin interface are written'
complete -c baton -l admin-allowed-hosts -x -d 'Host headers that the admin interface accepts, as <host>,… Default: all'
complete -c baton -l admin-max-connections -x -d 'Maximum number of concurrent connections to the admin interface'
complete -c baton -l local-address-ip-version -x -a 'v4 v6' -d 'IP version of the server\'s local address, which X-Forwarded-For may contain'
complete -c baton -l base-id -x -d 'Base ID for hot restart'
complete -c baton -l use-dynamic-base-id -n '__fish_not_contain_opt use-dynamic-base-id' -d 'Picks an unused base ID'
complete -c baton -l base-id-path -r -F -d 'File to which the base ID is written'
complete -c baton -l skip-hot-restart-on-no-parent -n '__fish_not_contain_opt skip-hot-restart-on-no-parent' -d 'With --restart-epoch: starts normally if the parent ended before this process was initialized'
complete -c baton -l skip-hot-restart-parent-stats -n '__fish_not_contain_opt skip-hot-restart-parent-stats' -d 'With --restart-epoch: does not take over the stats of the parent'
complete -c baton -l concurrency -x -d 'Number of worker threads'
complete -c baton -l worker-buffer-memory-mb -x -d 'Memory in which a worker buffers requests and responses'
complete -c baton -s l -l log-level -x -a 'trace debug info warning error critical off' -d 'Log level: trace, debug, info, warning, error, critical, off'
complete -c baton -l component-log-level -x -a '(__baton_component_levels)' -d 'Levels of individual components, such as http:debug,router:trace'
complete -c baton -l cpuset-threads -n '__fish_not_contain_opt cpuset-threads' -d 'Has no effect; accepted for compatibility with older start scripts'
complete -c baton -l log-path -r -F -d 'Log file instead of standard error'
complete -c baton -l log-format -x -d 'Layout of a log line'
complete -c baton -l log-format-escaped -n '__fish_not_contain_opt log-format-escaped' -d 'Escapes line ends and other control characters, so that each entry is one line'
complete -c baton -l restart-epoch -x -d 'Number of this epoch; usually set by baton-restarter'
complete -c baton -l log-stacktrace-single-entry -n '__fish_not_contain_opt log-stacktrace-single-entry' -d 'Logs a stack trace as one entry'
complete -c baton -l enable-fine-grain-logging -n '__fish_not_contain_opt enable-fine-grain-logging' -d 'Uses one logger per source file, each with its own level'
complete -c baton -l socket-path -r -F -d 'Hot restart socket; a leading @ means the abstract namespace'
complete -c baton -l socket-mode -x -d 'Permissions of the hot restart socket file, in octal'
complete -c baton -l hot-restart-version -n '__fish_not_contain_opt hot-restart-version' -d 'Prints the hot restart compatibility version and exits'
complete -c baton -l service-cluster -x -d 'Overrides node.cluster of the bootstrap'
complete -c baton -l service-node -x -d 'Overrides node.id of the bootstrap'
complete -c baton -l service-zone -x -d 'Overrides node.locality.zone of the bootstrap'
complete -c baton -l file-flush-interval-msec -x -d 'How long an access log buffers text before it is written'
complete -c baton -l file-flush-min-size-kb -x -d 'How much text an access log buffers before it is written'
complete -c baton -l drain-time-s -x -d 'How long connections are drained, that is, asked to close at the end of a response'
complete -c baton -l drain-strategy -x -a 'gradual immediate' -d 'gradual asks a share of connections to close that grows over the drain time; immediate asks all'
complete -c baton -l drain-on-sigterm -n '__fish_not_contain_opt drain-on-sigterm' -d 'Drains connections at SIGTERM before the server exits'
complete -c baton -l hand-over-connections -n '__fish_not_contain_opt hand-over-connections' -d 'At a hot restart, moves established connections to the new process'
complete -c baton -l parent-shutdown-time-s -x -d 'How long a hot restart waits before it shuts down the parent'
complete -c baton -l disable-hot-restart -n '__fish_not_contain_opt disable-hot-restart' -d 'Disables hot restart'
complete -c baton -l enable-mutex-tracing -n '__fish_not_contain_opt enable-mutex-tracing' -d 'Collects contention stats for GET /contention'
complete -c baton -l allow-unknown-fields -n '__fish_not_contain_opt allow-unknown-fields' -d 'Deprecated; the same as --allow-unknown-static-fields'
complete -c baton -l allow-unknown-static-fields -n '__fish_not_contain_opt allow-unknown-static-fields' -d 'Accepts unknown fields in static configuration, with a warning'
complete -c baton -l reject-unknown-dynamic-fields -n '__fish_not_contain_opt reject-unknown-dynamic-fields' -d 'Refuses unknown fields in dynamic configuration'
complete -c baton -l ignore-unknown-dynamic-fields -n '__fish_not_contain_opt ignore-unknown-dynamic-fields' -d 'Neither warns about nor counts unknown fields in dynamic configuration'
complete -c baton -l skip-deprecated-logs -n '__fish_not_contain_opt skip-deprecated-logs' -d 'Suppresses warnings about deprecated fields'
complete -c baton -l disable-extensions -x -d 'Extensions that no configuration may use, as <category>/<name>,…'
complete -c baton -l version -n '__fish_not_contain_opt version' -d 'Prints the version and exits'
complete -c baton -l schema -n '__fish_not_contain_opt schema' -d 'Prints the JSON Schema of the accepted configuration and exits'
complete -c baton -l enable-core-dump -n '__fish_not_contain_opt enable-core-dump' -d 'Allows core dumps of this process'
complete -c baton -l stats-tag -x -d 'A tag for all stats, shown by monitoring formats and sinks; may be repeated'
complete -c baton -s h -l help -n '__fish_not_contain_opt -s h help' -d 'Prints this text and exits'
