"""The website operator, installed by its chart on the real kube-apiserver: ten failures, and three upgrades."""
