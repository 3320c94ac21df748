# Puts HTB before eth0: LINE bytes a second, of which the first class (TOS 0x28) has GUARANTEED up to CEILING
# and all others the next two. Then runs what follows.
# shape.sh LINE GUARANTEED CEILING GUARANTEED CEILING COMMAND...
set -e
class() {
    tc class add dev eth0 parent "$1" classid "$2" htb rate "$3bps" ceil "$4bps"
}
tc qdisc add dev eth0 root handle 1: htb default 20
class 1: 1:1 "$1" "$1"
class 1:1 1:10 "$2" "$3"
class 1:1 1:20 "$4" "$5"
tc qdisc add dev eth0 parent 1:10 pfifo limit 50
tc qdisc add dev eth0 parent 1:20 pfifo limit 50
tc filter add dev eth0 parent 1: protocol ip u32 match ip dsfield 0x28 0xfc flowid 1:10
shift 5
"$@"
