verbs_groups() { :; }
