ranks_groups() { :; }
