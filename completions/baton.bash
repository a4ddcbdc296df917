# Completion of baton's options in bash. Written by scripts/document-options.ts from the option table: do not edit.

_baton() {
  local word=${COMP_WORDS[COMP_CWORD]} option='' value=''
  # The word as in the line: bash splits words at '=' and ':', and replaces only the last piece.
  local whole=${COMP_LINE:0:COMP_POINT}
  whole=${whole##*[[:space:]]}
  COMPREPLY=()
  case $whole in
    --*=*) option=${whole%%=*} value=${whole#*=} ;;
    -[a-z]=*) option=${whole%%=*} value=${whole#*=} ;;
    *)
      # The word before the whole one; the pieces of the whole one end when its length is reached.
      local index=$COMP_CWORD length=${#word}
      while ((length < ${#whole} && index > 0)); do
        index=$((index - 1))
        length=$((length + ${#COMP_WORDS[index]}))
      done
      ((index > 0)) && option=${COMP_WORDS[index - 1]}
      value=$whole
      ;;
  esac
  case $option in
    -c | --config-path)
      _baton_files "$value"
      return ;;
    --mode)
      _baton_words "$value" serve validate
      return ;;
    --format)
      _baton_words "$value" text json
      return ;;
    --route-tests)
      _baton_files "$value"
      return ;;
    --admin-address-path)
      _baton_files "$value"
      return ;;
    --local-address-ip-version)
      _baton_words "$value" v4 v6
      return ;;
    --base-id-path)
      _baton_files "$value"
      return ;;
    -l | --log-level)
      _baton_words "$value" trace debug info warning error critical off
      return ;;
    --component-log-level)
      _baton_component_levels "$value"
      return ;;
    --log-path)
      _baton_files "$value"
      return ;;
    --socket-path)
      _baton_files "$value"
      return ;;
    --drain-strategy)
      _baton_words "$value" gradual immediate
      return ;;
    --config-yaml | --admin-allowed-hosts | --admin-max-connections | --base-id | --concurrency | --worker-buffer-memory-mb | --log-format | --restart-epoch | --socket-mode | --service-cluster | --service-node | --service-zone | --file-flush-interval-msec | --file-flush-min-size-kb | --drain-time-s | --parent-shutdown-time-s | --disable-extensions | --stats-tag)
      # The value cannot be completed.
      return ;;
  esac
  [[ $whole == --*=* ]] && return
  if [[ -z $whole || $whole == -* ]]; then _baton_options "$whole"; else _baton_files "$whole"; fi
}

# All options except those already in the line: most may be given once.
_baton_options() {
  local name
  for name in --config-path --config-yaml --expand-env --watch-config --mode --format --route-tests --admin-address-path --admin-allowed-hosts --admin-max-connections --local-address-ip-version --base-id --use-dynamic-base-id --base-id-path --skip-hot-restart-on-no-parent --skip-hot-restart-parent-stats --concurrency --worker-buffer-memory-mb --log-level --component-log-level --cpuset-threads --log-path --log-format --log-format-escaped --restart-epoch --log-stacktrace-single-entry --enable-fine-grain-logging --socket-path --socket-mode --hot-restart-version --service-cluster --service-node --service-zone --file-flush-interval-msec --file-flush-min-size-kb --drain-time-s --drain-strategy --drain-on-sigterm --hand-over-connections --parent-shutdown-time-s --disable-hot-restart --enable-mutex-tracing --allow-unknown-fields --allow-unknown-static-fields --reject-unknown-dynamic-fields --ignore-unknown-dynamic-fields --skip-deprecated-logs --disable-extensions --version --schema --enable-core-dump --stats-tag --help; do
    [[ $name == "$1"* ]] || continue
    case " ${COMP_WORDS[*]:1:COMP_CWORD-1} " in
      *" $name "*) [[ $name == --stats-tag ]] || continue ;;
    esac
    COMPREPLY+=("$name")
  done
}

_baton_words() {
  local value=$1 each
  shift
  for each; do [[ $each == "$value"* ]] && COMPREPLY+=("$each"); done
  _baton_cut "$value"
}

_baton_files() {
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$1")
  _baton_cut "$1"
}

# <component>:<level>,<component>:<level>
_baton_component_levels() {
  local head='' item=$1 each
  [[ $item == *,* ]] && head=${item%,*}, item=${item##*,}
  if [[ $item == *:* ]]; then
    for each in trace debug info warning error critical off; do
      [[ $each == "${item#*:}"* ]] && COMPREPLY+=("$head${item%%:*}:$each")
    done
  else
    compopt -o nospace 2>/dev/null
    for each in a2a admin ai_protocol_manager alternate_protocols_cache aws assert backtrace basic_auth cache_filter client config connection conn_handler compression credential_injector decompression dns dubbo envoy_bug ext_authz ext_proc rocketmq file filter forward_proxy geolocation grpc happy_eyeballs hc health_checker http http2 hystrix init io jwt json_rpc kafka key_value_store lua local_rate_limit main matcher mcp misc mongo multi_connection notification oauth2 quic quic_stream pool rate_limit_quota rbac rds redis router runtime stats secret sse tap testing thrift tracing upstream udp wasm websocket golang stats_sinks dynamic_modules ip_tagging; do
      [[ $each == "$item"* && ,$head != *,"$each":* ]] && COMPREPLY+=("$head$each:")
    done
  fi
  _baton_cut "$1"
}

# Removes the part before the last piece of the value, which bash replaces, from the replies.
_baton_cut() {
  local kept='' index
  [[ $COMP_WORDBREAKS == *:* && $1 == *:* ]] && kept=${1%:*}:
  for index in "${!COMPREPLY[@]}"; do
    COMPREPLY[index]=${COMPREPLY[index]#"$kept"}
    [[ $COMP_WORDBREAKS != *=* && $whole == -*=* ]] && COMPREPLY[index]=$option=${COMPREPLY[index]}
  done
}

complete -F _baton baton
